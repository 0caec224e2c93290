// Activations that are rounded once, by the operation that they come from: which layers take them, and that a model
// computes what it computes elsewhere.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "model/fusion/site_space.hpp"
#include "model/model.hpp"
#include "runtime/dispatch/identity.hpp"
#include "runtime/memory/unbacked_memory.hpp"
#include "tests/model/golden.hpp"
#include "tests/runtime/formats/all_formats.hpp"
#include "tests/share.hpp"

namespace pascaline::testing {
namespace {

using Tokens = std::vector<std::int32_t>;

// A model whose rows every format takes whole.
ModelConfig whole_rows_config() {
  ModelConfig config = golden_model_a().config;
  config.text.hidden = config.vision.value().out_hidden = 256;
  config.text.head_dim = 64;
  config.text.mrope_section = {16, 8, 8};
  config.text.intermediate = 512;
  return config;
}

WeightRecipe mixed(std::vector<WeightRecipe::Rule> rules, ElementType others) {
  rules.push_back({"*", others});
  return {"mixed", std::move(rules)};
}

class RoundedRowsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> host_ = open_device("emulator");
  ModelConfig config_ = whole_rows_config();

  [[nodiscard]] static Tokens prompt(std::size_t count) {
    Tokens tokens(count);
    for (std::size_t i = 0; i < count; ++i) {
      tokens[i] = static_cast<std::int32_t>(1 + i * 37 % 400);
    }
    return tokens;
  }
  [[nodiscard]] static ModelOptions options_of(const WeightRecipe& weights) {
    ModelOptions options{.context = 64, .chunk = 16};
    options.weights = weights;
    options.cache = ElementType::float32;
    return options;
  }

  // The problems of a pass of so many tokens after a prompt, without those of kernels that nothing is rounded by.
  [[nodiscard]] std::set<std::string> problems_of(const WeightRecipe& weights, std::size_t tokens,
                                                  Fusion fusion = Fusion::automatic) const {
    UnbackedMemory memory;
    Executor executor(Executor::ObserveOnly{}, *host_, memory);
    WeightSource source = hash_weights(config_);
    ModelOptions options = options_of(weights);
    options.fusion = fusion;
    Model model(executor, config_, source, options);
    model.append({prompt(16), {}});
    std::set<std::string> problems;
    executor.observe([&](const ops::KernelProblem& problem) { problems.insert(problem.named().text()); });
    model.append({prompt(tokens), {}});
    return problems;
  }
  static void expect_has(const std::set<std::string>& problems, const std::string& problem) {
    EXPECT_TRUE(problems.contains(problem))
        << problem << " is none of\n  " << fmt::format("{}", fmt::join(problems, "\n  "));
  }
  static void expect_none(const std::set<std::string>& problems, const std::string& part) {
    for (const std::string& problem : problems) {
      EXPECT_EQ(problem.find(part), std::string::npos) << problem;
    }
  }

  // Logits of the last of these tokens, given `at_once` at a time.
  [[nodiscard]] std::vector<float> logits_of(Executor& executor, const WeightRecipe& weights, const Tokens& tokens,
                                             std::size_t at_once) const {
    WeightSource source = hash_weights(config_);
    Model model(executor, config_, source, options_of(weights));
    for (std::size_t first = 0; first < tokens.size(); first += at_once) {
      model.append({std::span(tokens).subspan(first, std::min(at_once, tokens.size() - first)), {}});
    }
    EXPECT_FALSE(executor.fell_back());
    return model.logits();
  }

  // Where sums differ in their last bits rounding to int8 may fall to the other side, so that a few logits of so small
  // a model move by a step of its activations.
  static void expect_alike(const std::vector<float>& got, const std::vector<float>& expected, const std::string& what) {
    ASSERT_EQ(got.size(), expected.size());
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      difference += std::pow(double{got[i]} - double{expected[i]}, 2);
      norm += std::pow(double{expected[i]}, 2);
    }
    EXPECT_LT(std::sqrt(difference / norm), 5e-2) << what;
  }

  // A plan by which a token's attention is one launch wherever the model has a site for it.
  [[nodiscard]] FusionFile whole_attention_of(const ModelOptions& options) const {
    UnbackedMemory memory;
    Executor executor(Executor::ObserveOnly{}, *host_, memory);
    WeightSource source = hash_weights(config_);
    const Model model(executor, config_, source, options);
    FusionFile plan{"a plan of this test", device_row(host_->info()), {}};
    for (const Problem& site : model.sites()) {
      if (site.kernel == "site_decode_attention") {
        plan.sites.push_back({site, "whole"});
      }
    }
    return plan;
  }

  struct Decoded {
    std::vector<std::vector<float>> logits;  ///< of each token of the prompt, given one by one
    Tokens chosen;                           ///< by steps after it
    std::set<std::string> kernels;           ///< that ran
  };
  [[nodiscard]] Decoded decode(Executor& executor, const ModelOptions& options) const {
    Decoded decoded;
    executor.observe([&](const ops::KernelProblem& problem) { decoded.kernels.insert(problem.named().kernel); });
    WeightSource source = hash_weights(config_);
    Model model(executor, config_, source, options);
    for (const std::int32_t token : prompt(5)) {
      model.append({std::span(&token, 1), {}});
      decoded.logits.push_back(model.logits());
    }
    decoded.chosen.push_back(model.sample());
    for (int i = 0; i < 6; ++i) {
      decoded.chosen.push_back(model.step());
    }
    executor.observe({});
    EXPECT_FALSE(executor.fell_back());
    return decoded;
  }
  void expect_whole_attention_gives_the_same(const WeightRecipe& weights, ElementType cache) const {
    DispatcherOptions with_cache;
    with_cache.cache = PASCALINE_TEST_CACHE;
    Dispatcher dispatcher(*host_, with_cache);
    Executor kernels(dispatcher);
    ModelOptions options = options_of(weights);
    options.cache = cache;
    ModelOptions single = options;
    single.fusion = Fusion::off;
    options.fusion_file = whole_attention_of(options);
    const Decoded whole = decode(kernels, options);
    const Decoded expected = decode(kernels, single);
    EXPECT_TRUE(whole.kernels.contains("attention_layer_q"));
    EXPECT_FALSE(whole.kernels.contains("attention_decode_qkv"));
    EXPECT_FALSE(expected.kernels.contains("attention_layer_q"));
    for (std::size_t i = 0; i < expected.logits.size(); ++i) {
      expect_alike(whole.logits[i], expected.logits[i], fmt::format("{}, token {}", weights.name(), i));
    }
    EXPECT_EQ(whole.chosen, expected.chosen) << weights.name();
  }

  // With the kernels of the emulated device: in passes of any number of rows what the processor gives in one.
  void expect_the_same_everywhere(const WeightRecipe& weights, const std::vector<std::size_t>& passes) const {
    DispatcherOptions options;
    options.cache = PASCALINE_TEST_CACHE;
    Dispatcher dispatcher(*host_, options);
    Executor kernels(dispatcher);
    Executor processor(*host_);
    const Tokens tokens = prompt(9);
    const std::vector<float> expected = logits_of(processor, weights, tokens, tokens.size());
    for (const std::size_t at_once : passes) {
      expect_alike(logits_of(kernels, weights, tokens, at_once), expected,
                   fmt::format("{}, {} at once", weights.name(), at_once));
    }
  }
};

TEST_F(RoundedRowsTest, AStepRoundsEveryRowWhereItComesFromOrWhereItIsNormalised) {
  const auto problems = problems_of(ElementType::q4_k, 1);
  expect_has(problems,
             "matvec_q M=1 N=512 K=256 EPILOGUE=0 NORM=1 EPSILON=1000 STORAGE=float32 INPUT=float32 WEIGHT=q4_k");
  expect_has(problems,
             "attention_decode_qkv HEADS=4 KV_HEADS=2 HEAD_DIM=64 KEYS=64 POSITIONS=64 SECTION_H=8 SECTION_W=8 NORM=1 "
             "EPSILON=1000 STORAGE=float32 CACHE=float32 OUTPUT=int8");
  expect_has(problems,
             "matvec_q M=1 N=256 K=256 EPILOGUE=4 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=int8 WEIGHT=q4_k");
  expect_has(problems, "mlp M=1 HIDDEN=256 INTERMEDIATE=512 EPSILON=1000 STORAGE=float32 WEIGHT=q4_k DOWN=q4_k");
  expect_none(problems, "rmsnorm");
  expect_none(problems, "quantize");
}

TEST_F(RoundedRowsTest, AStepOfSingleOperationsRoundsEveryRowWhereItComesFrom) {
  const auto problems = problems_of(ElementType::q4_k, 1, Fusion::off);
  expect_has(problems, "rmsnorm ROWS=1 WIDTH=256 RESIDUAL=0 BY_ROW=0 EPSILON=1000 STORAGE=float32 OUTPUT=int8");
  expect_has(problems,
             "matvec_q M=1 N=512 K=256 EPILOGUE=0 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=int8 WEIGHT=q4_k");
  expect_has(problems,
             "matvec_q M=1 N=256 K=256 EPILOGUE=4 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=int8 WEIGHT=q4_k");
  expect_has(problems,
             "matvec_q M=1 N=1024 K=256 EPILOGUE=7 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=int8 WEIGHT=q4_k");
  expect_has(problems,
             "matvec_q M=1 N=256 K=512 EPILOGUE=4 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=int8 WEIGHT=q4_k");
  expect_none(problems, "quantize");
}

TEST_F(RoundedRowsTest, AFewRowsRoundThemInNormsAndSwiglu) {
  for (const int rows : {2, 8}) {
    const auto problems = problems_of(ElementType::q8_0, static_cast<std::size_t>(rows));
    expect_has(
        problems,
        fmt::format("rmsnorm ROWS={} WIDTH=256 RESIDUAL=0 BY_ROW=0 EPSILON=1000 STORAGE=float32 OUTPUT=int8", rows));
    expect_has(
        problems,
        fmt::format("matvec_q M={} N=512 K=256 EPILOGUE=0 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=int8 WEIGHT=q8_0",
                    rows));
    expect_has(problems,
               fmt::format(
                   "matvec_q M={} N=256 K=256 EPILOGUE=4 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=float32 WEIGHT=q8_0",
                   rows));
    expect_has(
        problems,
        fmt::format("matvec_q M={} N=1024 K=256 EPILOGUE=7 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=int8 WEIGHT=q8_0",
                    rows));
    expect_has(
        problems,
        fmt::format("matvec_q M={} N=256 K=512 EPILOGUE=4 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=int8 WEIGHT=q8_0",
                    rows));
    expect_none(problems, "quantize");
  }
}

// A scale for a whole row is known to a norm only.
TEST_F(RoundedRowsTest, RowsWithOneScaleAreRoundedByNormsOnly) {
  const auto problems = problems_of(ElementType::int8_row, 1, Fusion::off);
  expect_has(problems, "rmsnorm ROWS=1 WIDTH=256 RESIDUAL=0 BY_ROW=1 EPSILON=1000 STORAGE=float32 OUTPUT=int8");
  expect_has(problems,
             "matvec_q M=1 N=512 K=256 EPILOGUE=0 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=int8 WEIGHT=int8_row");
  expect_has(problems,
             "matvec_q M=1 N=1024 K=256 EPILOGUE=5 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=int8 WEIGHT=int8_row");
  expect_has(problems,
             "matvec_q M=1 N=256 K=512 EPILOGUE=4 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=float32 WEIGHT=int8_row");
  expect_has(problems,
             "matvec_q M=1 N=256 K=256 EPILOGUE=4 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=float32 WEIGHT=int8_row");
  expect_none(problems, "CACHE=float32 OUTPUT=int8");
}

TEST_F(RoundedRowsTest, WhatARowBecomesIsUpToWhatReadsIt) {
  auto problems = problems_of(
      mixed({{"*gate_proj*", ElementType::float16}, {"*up_proj*", ElementType::float16}}, ElementType::q4_k), 1);
  expect_has(problems, "matvec M=1 N=1024 K=256 EPILOGUE=5 STORAGE=float32 WEIGHT=float16");
  expect_has(problems,
             "matvec_q M=1 N=256 K=512 EPILOGUE=4 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=float32 WEIGHT=q4_k");
  problems = problems_of(
      mixed({{"*o_proj*", ElementType::float16}, {"*down_proj*", ElementType::int8_row}}, ElementType::q4_k), 1);
  expect_has(problems, "matvec M=1 N=256 K=256 EPILOGUE=4 STORAGE=float32 WEIGHT=float16");
  expect_has(problems, "mlp M=1 HIDDEN=256 INTERMEDIATE=512 EPSILON=1000 STORAGE=float32 WEIGHT=q4_k DOWN=int8_row");
  expect_none(problems, "CACHE=float32 OUTPUT=int8");
}

// Rows that end within a chunk of the format are rounded by the product, which knows the zeros behind them.
TEST_F(RoundedRowsTest, RowsThatAreFilledUpStayFloats) {
  config_.text.hidden = config_.vision.value().out_hidden = 192;
  const auto problems = problems_of(ElementType::q4_k, 1, Fusion::off);
  expect_has(problems,
             "matvec_q M=1 N=512 K=192 EPILOGUE=0 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=float32 WEIGHT=q4_k");
  expect_has(problems,
             "matvec_q M=1 N=192 K=256 EPILOGUE=4 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=int8 WEIGHT=q4_k");
  expect_has(problems,
             "matvec_q M=1 N=1024 K=192 EPILOGUE=5 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=float32 WEIGHT=q4_k");
}

// Heads of 16 columns have no blocks of 32.
TEST_F(RoundedRowsTest, SmallHeadsStayFloats) {
  config_.text.head_dim = 16;
  config_.text.mrope_section = {4, 2, 2};
  const auto problems = problems_of(ElementType::q8_0, 1);
  expect_has(problems,
             "matvec_q M=1 N=256 K=64 EPILOGUE=4 NORM=0 EPSILON=1000 STORAGE=float32 INPUT=float32 WEIGHT=q8_0");
}

// Room for the tower's rows is made whichever of its layers takes them, also where those of a pass of tokens need less.
TEST_F(RoundedRowsTest, ATowerWithOneQuantizedLayerHasRoomForItsRows) {
  std::vector<float> pixels(static_cast<std::size_t>(24 * config_.vision.value().patch_values()), 0.25F);
  const PatchView image{4, 6, pixels};
  Tokens tokens = prompt(9);
  std::fill_n(tokens.begin() + 1, 6, static_cast<std::int32_t>(config_.vision->image_token));
  UnbackedMemory memory;
  Executor executor(Executor::ObserveOnly{}, *host_, memory);
  WeightSource source = hash_weights(config_);
  ModelOptions options =
      options_of(mixed({{"*visual.blocks.1.mlp.linear_fc1*", ElementType::q8_0}}, ElementType::float32));
  options.chunk = 4;
  Model model(executor, config_, source, options);
  std::set<std::string> problems;
  executor.observe([&](const ops::KernelProblem& problem) { problems.insert(problem.named().text()); });
  model.append({tokens, {&image, 1}});
  expect_has(problems, "matmul_q M=24 N=64 K=64 EPILOGUE=2 STORAGE=float32 WEIGHT=q8_0");
}

TEST_F(RoundedRowsTest, AnyNumberOfRowsGivesTheSame) { expect_the_same_everywhere(ElementType::q4_k, {1, 2, 5, 8, 9}); }

TEST_F(RoundedRowsTest, EveryFormatGivesTheSame) {
  for (const ElementType type : share_of<ElementType>({kPackedTypes.begin(), kPackedTypes.end()}, "formats", 2)) {
    expect_the_same_everywhere(type, {1});
  }
}

TEST_F(RoundedRowsTest, MixedFormatsGiveTheSame) {
  expect_the_same_everywhere(
      mixed({{"*gate_proj*", ElementType::float16}, {"*up_proj*", ElementType::float16}}, ElementType::q4_k), {1, 9});
  expect_the_same_everywhere(
      mixed({{"*o_proj*", ElementType::float16}, {"*down_proj*", ElementType::q8_0}}, ElementType::int8_row), {1, 9});
  expect_the_same_everywhere(
      mixed({{"*o_proj*", ElementType::q6_k}, {"*down_proj*", ElementType::int8_row}}, ElementType::q4_k), {1, 9});
}

// As a plan says: logits are those of single operations, token by token, and so are the tokens that steps choose, which
// are launched as a graph.
TEST_F(RoundedRowsTest, ATokensAttentionInOneLaunchGivesTheSame) {
  for (const bool normalises_heads : {true, false}) {
    config_.text.normalises_heads = normalises_heads;
    expect_whole_attention_gives_the_same(ElementType::q4_k, ElementType::float32);
    expect_whole_attention_gives_the_same(mixed({{"*o_proj*", ElementType::q6_k}}, ElementType::q8_0),
                                          ElementType::int8);
  }
}

// What makes queries, keys and values of several formats are several products; plain weights have no such kernel.
TEST_F(RoundedRowsTest, AttentionInOneLaunchNeedsPackedWeightsOfOneFormat) {
  EXPECT_EQ(whole_attention_of(options_of(ElementType::q4_k)).sites.size(), 1U);
  for (const WeightRecipe& weights :
       {WeightRecipe(ElementType::float16), mixed({{"*v_proj*", ElementType::q6_k}}, ElementType::q4_k),
        mixed({{"*o_proj*", ElementType::float16}}, ElementType::q4_k)}) {
    const FusionFile plan = whole_attention_of(options_of(weights));
    ASSERT_FALSE(plan.sites.empty()) << weights.name();
    for (const FusionFile::Entry& entry : plan.sites) {
      const std::vector<AlternativeFacts> ways = alternatives_of(entry.site.kernel);
      const auto whole =
          std::ranges::find_if(ways, [](const AlternativeFacts& way) { return std::string(way.name) == "whole"; });
      ASSERT_NE(whole, ways.end());
      EXPECT_FALSE(whole->fits(site_key(entry.site))) << entry.site.text();
    }
  }
}

TEST_F(RoundedRowsTest, RowsThatAreFilledUpGiveTheSame) {
  config_.text.hidden = config_.vision.value().out_hidden = 192;
  expect_the_same_everywhere(ElementType::q4_k, {1, 9});
}

}  // namespace
}  // namespace pascaline::testing
