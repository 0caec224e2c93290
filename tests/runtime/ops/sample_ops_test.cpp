#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "runtime/ops/advance.hpp"
#include "tests/runtime/ops/op_bench.hpp"
#include "tests/runtime/ops/sample_bench.hpp"

namespace pascaline::testing {
namespace {

using ops::SampledToken;
using ops::SamplingSettings;

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

enum class Logits { normal, few_values, equal, special };

std::vector<float> logits_of(Logits kind, std::size_t count, std::mt19937_64& generator, float deviation) {
  std::normal_distribution<float> distribution(0.0F, deviation);
  std::vector<float> logits(count);
  for (float& logit : logits) {
    switch (kind) {
      case Logits::normal:
        logit = distribution(generator);
        break;
      case Logits::few_values:
        logit = static_cast<float>(generator() % 5) - 2.0F;
        break;
      case Logits::equal:
        logit = -1.25F;
        break;
      case Logits::special:
        logit = std::array{kInfinite, -kInfinite, kNoNumber, 0.0F, -0.0F, 1e-40F, 3e38F, -3e38F}[generator() % 8];
        break;
    }
  }
  return logits;
}

/// Settings and logits that the kernel and the host must choose alike from, again and again.
struct Same {
  const char* name;
  std::size_t vocabulary;
  int draws;
  SamplingSettings settings;
  Logits logits = Logits::normal;
  float deviation = 3.0F;

  friend void PrintTo(const Same& of, std::ostream* out) { *out << of.name; }
};

SamplingSettings with(float temperature, std::int32_t top_k, float top_p, float repetition = 1, float presence = 0) {
  SamplingSettings settings;
  settings.temperature = temperature;
  settings.top_k = top_k;
  settings.top_p = top_p;
  settings.repetition = repetition;
  settings.presence = presence;
  settings.seed = 0x123456789ABCDEFULL;
  return settings;
}

SamplingSettings with_min_p(SamplingSettings settings, float min_p) {
  settings.min_p = min_p;
  return settings;
}

class SampleOpsHostTest : public ::testing::TestWithParam<Same> {};

TEST_P(SampleOpsHostTest, ChoosesWhatTheHostChooses) {
  const Same& of = GetParam();
  std::mt19937_64 generator(of.vocabulary);
  SampleBench bench(of.vocabulary);
  bench.set(of.settings);
  std::vector<std::int32_t> seen(of.vocabulary);
  std::uint64_t step = 0xFFFFFFFCU;  // the upper half of the counter is met, too
  bench.set_step(step);
  std::vector<float> logits;
  for (int draw = 0; draw < of.draws; ++draw) {
    if (draw % 8 == 0) {
      logits = logits_of(of.logits, of.vocabulary, generator, of.deviation);
      bench.set_logits(logits);
    }
    const SampledToken expected = ops::sample_on_host(logits, of.settings, seen, step);
    const SampledToken chosen = bench.choose();
    ASSERT_EQ(chosen.token, expected.token) << "draw " << draw;
    ASSERT_EQ(chosen.probability, expected.probability) << "draw " << draw;
  }
  EXPECT_EQ(bench.step(), step);
  EXPECT_EQ(bench.seen(), seen);
}

const Same kSame[] = {
    {"greedy", 1031, 60, with(0, 0, 1)},
    {"greedy_ties", 1031, 40, with(0, 0, 1), Logits::few_values},
    {"greedy_penalties", 1031, 60, with(0, 0, 1, 1.5F, 0.5F)},
    {"one", 1, 20, with(0.7F, 20, 0.8F)},
    {"two", 2, 60, with(0.7F, 20, 0.8F)},
    {"top_1", 257, 40, with(0.7F, 1, 1)},
    {"top_k", 1031, 200, with(1, 20, 1)},
    {"top_k_above", 257, 200, with(1, 100'000, 1)},
    {"top_p", 1031, 200, with(1, 0, 0.9F)},
    {"top_p_0", 1031, 40, with(1, 0, 0)},
    {"all", 1031, 200, with(1, 0, 1)},
    {"both", 1031, 300, with(0.7F, 20, 0.8F)},
    {"penalties", 515, 300, with(0.9F, 40, 0.95F, 1.2F, 1.5F)},
    {"rewards", 515, 100, with(0.9F, 40, 0.95F, 0.5F, -0.5F)},
    {"min_p", 1031, 200, with_min_p(with(1, 0, 1), 0.05F)},
    {"min_p_of_the_rest", 1031, 200, with_min_p(with(1.5F, 200, 0.9F, 1.2F, 0.5F), 0.2F)},
    {"min_p_without_effect", 1031, 60, with_min_p(with(1, 20, 0.5F), 1e-9F)},
    {"min_p_1", 257, 60, with_min_p(with(1, 0, 1), 1), Logits::few_values},
    {"min_p_beyond", 257, 40, with_min_p(with(1, 0, 1), 7)},
    {"min_p_no_number", 257, 40, with_min_p(with(1, 0, 1), kNoNumber)},
    {"min_p_flat", 9001, 60, with_min_p(with(1, 0, 1), 0.9F), Logits::normal, 0.1F},
    {"min_p_special", 33, 60, with_min_p(with(1, 0, 0.9F), 0.1F), Logits::special},
    {"ties", 1031, 100, with(1, 300, 0.9F), Logits::few_values},
    {"equal_beyond_candidates", 4099, 60, with(1, 3000, 0.9F), Logits::equal},
    {"flat_beyond_candidates", 9001, 100, with(1, 5000, 0.97F), Logits::normal, 0.2F},
    {"flat_whole", 9000, 60, with(1, 0, 1), Logits::normal, 0.01F},
    {"cold", 1031, 60, with(2e-6F, 0, 1)},
    {"hot", 1031, 60, with(3e38F, 900, 0.5F)},
    {"steep", 1031, 60, with(0.1F, 0, 0.999F), Logits::normal, 10.0F},
    {"special", 33, 100, with(1, 0, 0.9F), Logits::special},
    {"special_penalties", 7, 200, with(1e-3F, 3, 1, 1.5F, 1), Logits::special},
    {"odd_settings", 67, 40, with(-1, -5, 7, -2, kNoNumber)},
    {"large", 151'936, 3, with(0.7F, 20, 0.8F)},
};

INSTANTIATE_TEST_SUITE_P(Settings, SampleOpsHostTest, ::testing::ValuesIn(kSame),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(SampleOpsTest, WithoutANumberThereIsNothingToChoose) {
  for (const float temperature : {0.0F, 1.0F}) {
    SampleBench bench(5);
    bench.set(with(temperature, 3, 0.9F));
    bench.set_logits(std::vector<float>(5, kNoNumber));
    const SampledToken none = bench.choose();
    EXPECT_EQ(none.token, 0);
    EXPECT_EQ(none.probability, 0.0F);
    EXPECT_EQ(bench.step(), 1U);
    EXPECT_EQ(bench.seen(), std::vector<std::int32_t>(5));
  }
}

TEST(SampleOpsTest, ARecordedLaunchGoesOnByItself) {
  const SamplingSettings settings = with(1, 0, 1, 1.3F, 0.5F);
  std::mt19937_64 generator(1);
  const std::vector<float> logits = logits_of(Logits::normal, 300, generator, 1.0F);
  SampleBench bench(300);
  bench.set_logits(logits);
  bench.set(settings);
  std::vector<std::int32_t> seen(300);
  std::uint64_t step = 0;
  EXPECT_EQ(bench.choose().token, ops::sample_on_host(logits, settings, seen, step).token);
  const Graph graph = bench.device().record([&] { bench.launch(); });
  EXPECT_EQ(bench.step(), 1U) << "recording runs nothing";
  for (int i = 0; i < 20; ++i) {
    bench.device().launch(graph);
    bench.device().synchronize();
    ASSERT_EQ(bench.chosen().token, ops::sample_on_host(logits, settings, seen, step).token) << "launch " << i;
  }
  EXPECT_EQ(bench.step(), 21U);
  EXPECT_EQ(bench.seen(), seen);
}

TEST(AdvanceOpsTest, AddsOneEverywhere) {
  OpBench bench;
  const TensorView length = bench.given(kInt, {1}, {41});
  const TensorView slots = bench.given(kInt, {1}, {-1});
  const TensorView positions = bench.given(kInt, {3, 1}, {0, 7, 2'147'483'647.0});
  for (int i = 1; i <= 3; ++i) {
    ops::run(bench.dispatcher(), ops::Advance{length, slots, positions});
    bench.expect(length, {41.0 + i}, "length");
    bench.expect(slots, {-1.0 + i}, "slots");
    bench.expect(positions, {0.0 + i, 7.0 + i, -2'147'483'649.0 + i}, "positions");
  }
}

}  // namespace
}  // namespace pascaline::testing
