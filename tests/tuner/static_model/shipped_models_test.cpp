#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/space/enumeration.hpp"
#include "core/util/paths.hpp"
#include "tests/tuner/static_model/modelled_space.hpp"
#include "tuner/static_model/ranking.hpp"

namespace pascaline {
namespace {

using testing::sm_61_rates;

std::vector<Space> shipped() {
  std::vector<Space> out;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder("search_spaces"))) {
    if (entry.path().extension() == ".json") {
      out.push_back(Space::load(entry.path()));
    }
  }
  return out;
}

// Visits valid configurations of the space, evenly spread over the first many of them.
template <typename Visit>
void for_some_valid(const BoundSpace& bound, Visit visit) {
  std::size_t seen = 0;
  Enumerator(bound).for_each([&](std::span<const std::uint16_t> indices) {
    if (seen++ % 97 == 0) {
      visit(indices);
    }
    return seen < 20'000;
  });
  EXPECT_GT(seen, 0U) << bound.problem().text();
}

TEST(ShippedModelsTest, KernelsOfTheLibrarySayWhatTheyAskOfTheDevice) {
  for (const char* kernel : {"matmul", "matvec", "attention_prefill", "attention_decode", "attention_decode_qkv",
                             "attention_sparse_prefill", "attention_sparse_decode", "rmsnorm", "layernorm", "softmax",
                             "elementwise", "transpose", "gather", "qk_norm_rope", "rope_vision"}) {
    const Space space = Space::load(data_folder("search_spaces") / (std::string(kernel) + ".json"));
    ASSERT_TRUE(space.model) << kernel;
    EXPECT_TRUE(space.model->registers && space.model->flops) << kernel;
  }
}

TEST(ShippedModelsTest, EveryValidConfigurationHasATime) {
  for (const Space& space : shipped()) {
    for (const std::int64_t sm_count : {3, 20, 132}) {
      const DeviceRates rates = sm_61_rates(sm_count);
      const BoundSpace bound(space, space.example_problem(), rates.limits);
      const StaticModel model(bound, rates);
      for_some_valid(bound, [&](std::span<const std::uint16_t> indices) {
        const auto time = model.time_us(indices);
        ASSERT_TRUE(time) << space.config_at(indices).text();
        EXPECT_TRUE(std::isfinite(*time) && *time > 0) << *time << " " << space.config_at(indices).text();
      });
    }
  }
}

TEST(ShippedModelsTest, ManyShapesHaveTimes) {
  const std::vector<std::pair<std::string, std::vector<std::pair<std::string, std::string>>>> problems{
      {"matmul", {{"M", "1"}, {"N", "1"}, {"K", "1"}}},
      {"matmul", {{"M", "100000"}, {"N", "65536"}, {"K", "65536"}, {"EPILOGUE", "5"}}},
      {"matvec", {{"M", "8"}, {"N", "3"}, {"K", "9"}, {"STORAGE", "float16"}}},
      {"mlp", {{"M", "8"}, {"HIDDEN", "30"}, {"INTERMEDIATE", "7"}, {"WEIGHT", "q4_k"}}},
      {"mlp", {{"M", "1"}, {"HIDDEN", "4096"}, {"INTERMEDIATE", "12288"}, {"WEIGHT", "int8_row"}}},
      {"attention_projected",
       {{"HEADS", "16"},
        {"KV_HEADS", "8"},
        {"HEAD_DIM", "128"},
        {"KEYS", "900"},
        {"HIDDEN", "64"},
        {"WEIGHT", "q6_k"}}},
      {"attention_prefill",
       {{"HEADS", "3"}, {"KV_HEADS", "1"}, {"HEAD_DIM", "64"}, {"QUERIES", "7"}, {"KEYS", "1000"}}},
      {"attention_prefill",
       {{"HEADS", "16"},
        {"KV_HEADS", "16"},
        {"HEAD_DIM", "64"},
        {"QUERIES", "999"},
        {"CAUSAL", "0"},
        {"SEGMENTS", "5"}}},
      {"attention_decode", {{"HEADS", "16"}, {"KV_HEADS", "8"}, {"HEAD_DIM", "128"}, {"KEYS", "1"}}},
      {"attention_sparse_prefill",
       {{"HEADS", "3"}, {"KV_HEADS", "1"}, {"HEAD_DIM", "64"}, {"QUERIES", "7"}, {"KEYS", "1000"}, {"WINDOW", "1"}}},
      {"attention_sparse_prefill",
       {{"HEADS", "16"}, {"KV_HEADS", "8"}, {"HEAD_DIM", "64"}, {"QUERIES", "999"}, {"LISTS", "8"}}},
      {"attention_sparse_decode", {{"HEADS", "16"}, {"KV_HEADS", "8"}, {"HEAD_DIM", "128"}, {"KEYS", "1"}}},
      {"softmax", {{"ROWS", "1"}, {"WIDTH", "1"}}},
      {"layernorm", {{"ROWS", "1"}, {"WIDTH", "100000"}}},
      {"transpose", {{"ROWS", "1"}, {"COLUMNS", "1"}}},
      {"gather", {{"TOKENS", "1"}, {"WIDTH", "1"}, {"VOCABULARY", "1"}}}};
  for (const auto& [kernel, values] : problems) {
    const Space space = Space::load(data_folder("search_spaces") / (kernel + ".json"));
    const DeviceRates rates = sm_61_rates();
    const BoundSpace bound(space, space.problem(values), rates.limits);
    const StaticModel model(bound, rates);
    for_some_valid(bound, [&](std::span<const std::uint16_t> indices) {
      const auto time = model.time_us(indices);
      ASSERT_TRUE(time) << bound.problem().text() << " " << space.config_at(indices).text();
      EXPECT_TRUE(std::isfinite(*time) && *time > 0) << space.config_at(indices).text();
    });
  }
}

TEST(ShippedModelsTest, RankingIsTheSameForASeedAndHoldsTheBest) {
  const Space space = Space::load(data_folder("search_spaces") / "softmax.json");
  const DeviceRates rates = sm_61_rates();
  const BoundSpace bound(space, space.example_problem(), rates.limits);
  const Ranking all = rank_configs(bound, rates, 5, 1'000'000, 1);
  EXPECT_EQ(all.ranked, all.valid);
  ASSERT_EQ(all.best.size(), 5U);
  for (std::size_t i = 1; i < all.best.size(); ++i) {
    EXPECT_LE(all.best[i - 1].estimate.time_us, all.best[i].estimate.time_us);
  }
  const Ranking some = rank_configs(bound, rates, 5, 50, 7);
  EXPECT_EQ(some.valid, all.valid);
  EXPECT_EQ(some.ranked, 50U);
  EXPECT_GE(some.best.front().estimate.time_us, all.best.front().estimate.time_us);
  EXPECT_EQ(rank_configs(bound, rates, 5, 50, 7).best.back().config, some.best.back().config);
  for (const RankedConfig& ranked : some.best) {
    EXPECT_FALSE(bound.why_invalid(ranked.config)) << ranked.config.text();
  }
}

}  // namespace
}  // namespace pascaline
