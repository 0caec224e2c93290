#include "runtime/ops/sample_host.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace pascaline::testing {
namespace {

using ops::SampledToken;
using ops::SamplingSettings;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

SamplingSettings warm(float temperature, std::int32_t top_k = 0, float top_p = 1.0F) {
  SamplingSettings settings;
  settings.temperature = temperature;
  settings.top_k = top_k;
  settings.top_p = top_p;
  settings.seed = 5;
  return settings;
}

SampledToken choose(const std::vector<float>& logits, const SamplingSettings& settings, std::uint64_t step = 0) {
  return ops::sample_on_host(logits, settings, {}, step);
}

std::vector<float> drawn_logits(std::size_t count, std::uint64_t seed, float deviation = 2.0F) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> distribution(0.0F, deviation);
  std::vector<float> logits(count);
  std::generate(logits.begin(), logits.end(), [&] { return distribution(generator); });
  return logits;
}

// In float64, by sorting: the ids that are kept, from the most probable on, and their probabilities.
struct Kept {
  std::vector<std::size_t> ids;
  std::vector<double> probabilities;
};

Kept kept_in_float64(const std::vector<float>& logits, const std::vector<std::int32_t>& seen,
                     const SamplingSettings& settings) {
  std::vector<double> values(logits.begin(), logits.end());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] > 0) {
      values[i] = (values[i] > 0 ? values[i] / settings.repetition : values[i] * settings.repetition) -
                  static_cast<double>(settings.presence);
    }
  }
  Kept kept;
  kept.ids.resize(values.size());
  std::iota(kept.ids.begin(), kept.ids.end(), std::size_t{0});
  std::stable_sort(kept.ids.begin(), kept.ids.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  if (settings.top_k > 0 && static_cast<std::size_t>(settings.top_k) < kept.ids.size()) {
    kept.ids.resize(static_cast<std::size_t>(settings.top_k));
  }
  double sum = 0;
  for (const std::size_t id : kept.ids) {
    kept.probabilities.push_back(
        std::exp((values[id] - values[kept.ids[0]]) / static_cast<double>(settings.temperature)));
    sum += kept.probabilities.back();
  }
  double through = 0;
  std::size_t count = 0;
  while (count < kept.ids.size() &&
         (count == 0 || (settings.top_p < 1.0F && through < settings.top_p * sum) || settings.top_p >= 1.0F)) {
    through += kept.probabilities[count++];
  }
  // As Transformers' MinPLogitsWarper, after the others.
  const auto is_likely = [&](double probability) {
    return probability >= static_cast<double>(settings.min_p) * kept.probabilities.front();
  };
  while (count > 1 && !is_likely(kept.probabilities[count - 1])) {
    through -= kept.probabilities[--count];
  }
  kept.ids.resize(count);
  kept.probabilities.resize(count);
  for (double& probability : kept.probabilities) {
    probability /= through;
  }
  return kept;
}

// Whether `chosen` is what float64 chooses, or rounding may have moved a boundary across the draw.
void expect_as_in_float64(const Kept& kept, const SampledToken& chosen, std::uint64_t random, int* exact) {
  const double place = std::ldexp(static_cast<double>(random), -64);
  double through = 0;
  std::size_t i = 0;
  for (; i + 1 < kept.ids.size(); ++i) {
    through += kept.probabilities[i];
    if (place < through) {
      break;
    }
  }
  const auto at = std::find(kept.ids.begin(), kept.ids.end(), static_cast<std::size_t>(chosen.token));
  ASSERT_NE(at, kept.ids.end()) << "token " << chosen.token << " is not among the " << kept.ids.size() << " kept";
  const auto index = static_cast<std::size_t>(at - kept.ids.begin());
  EXPECT_NEAR(chosen.probability, kept.probabilities[index], 1e-5 * kept.probabilities[index]);
  if (index == i) {
    ++*exact;
    return;
  }
  const double before =
      std::accumulate(kept.probabilities.begin(), at - kept.ids.begin() + kept.probabilities.begin(), 0.0);
  EXPECT_NEAR(place, place < before ? before : before + kept.probabilities[index], 4e-6) << "token " << chosen.token;
}

TEST(PhiloxTest, GivesThePublishedWords) {
  EXPECT_EQ(ops::philox(0, 0), 0x6627E8D5E169C58DULL);
  EXPECT_NE(ops::philox(0, 1), ops::philox(1, 0));
  EXPECT_NE(ops::philox(0, std::uint64_t{1} << 32U), ops::philox(0, 0));
  EXPECT_NE(ops::philox(std::uint64_t{1} << 32U, 0), ops::philox(0, 0));
}

TEST(SampleOnHostTest, GreedyTakesTheFirstOfTheLargest) {
  EXPECT_EQ(choose({1, 3, 2, 3}, {}).token, 1);
  EXPECT_EQ(choose({1, 3, 2, 3}, warm(1e-7F)).token, 1);
  EXPECT_EQ(choose({1, 3, 2, 3}, warm(-1)).token, 1);
  EXPECT_EQ(choose({1, 3, 2, 3}, warm(kNan)).token, 1);
  EXPECT_EQ(choose({1, 3, 2, 3}, warm(1, 1)).token, 1);
  EXPECT_EQ(choose({-0.0F, 0.0F}, {}).token, 0) << "they are equal";
  EXPECT_EQ(choose({-2, -1, -3}, {}).token, 1);
  EXPECT_EQ(choose({-kInfinity, -kInfinity}, {}).token, 0);
  EXPECT_EQ(choose({5, kInfinity, kInfinity}, {}).token, 1);
  EXPECT_EQ(choose({1, 3}, {}).probability, 1.0F);
}

TEST(SampleOnHostTest, NanIsNeverChosen) {
  EXPECT_EQ(choose({kNan, 3, kNan}, {}).token, 1);
  for (std::uint64_t step = 0; step < 200; ++step) {
    EXPECT_EQ(choose({kNan, 3, -kNan, 3, kNan}, warm(1), step).token % 2, 1);
  }
  std::vector<std::int32_t> seen{1, 0};
  for (const float temperature : {0.0F, 1.0F}) {
    std::uint64_t step = 7;
    const SampledToken none = ops::sample_on_host(std::vector<float>{kNan, kNan}, warm(temperature), seen, step);
    EXPECT_EQ(none.token, 0);
    EXPECT_EQ(none.probability, 0.0F);
    EXPECT_EQ(step, 8U);
    EXPECT_EQ(seen, (std::vector<std::int32_t>{1, 0})) << "nothing was chosen";
  }
}

TEST(SampleOnHostTest, InfinitiesAreWeighedAmongThemselves) {
  int first = 0;
  for (std::uint64_t step = 0; step < 400; ++step) {
    const SampledToken chosen = choose({kInfinity, 1, kInfinity, -kInfinity}, warm(1), step);
    EXPECT_EQ(chosen.token % 2, 0);
    EXPECT_EQ(chosen.probability, 0.5F);
    first += chosen.token == 0 ? 1 : 0;
  }
  EXPECT_NEAR(first, 200, 60);
}

TEST(SampleOnHostTest, TiesAreCutByLowerIds) {
  const std::vector<float> equal(100, 1.5F);
  for (std::uint64_t step = 0; step < 300; ++step) {
    EXPECT_LT(choose(equal, warm(1, 7), step).token, 7);
    EXPECT_LT(choose(equal, warm(1, 0, 0.25F), step).token, 25);
    EXPECT_FLOAT_EQ(choose(equal, warm(1, 0, 0.25F), step).probability, 1.0F / 25);
  }
}

TEST(SampleOnHostTest, AtLeastOneIsKept) {
  const std::vector<float> logits = drawn_logits(300, 1);
  const std::int32_t best = choose(logits, {}).token;
  for (std::uint64_t step = 0; step < 50; ++step) {
    EXPECT_EQ(choose(logits, warm(2, 0, 0.0F), step).token, best);
    EXPECT_EQ(choose(logits, warm(2, 0, -1.0F), step).token, best);
    EXPECT_EQ(choose(logits, warm(2, 0, 1e-20F), step).token, best);
  }
}

TEST(SampleOnHostTest, ExtremeTemperatures) {
  const std::vector<float> logits{1, 1.01F, 0.5F, -3};
  std::vector<int> counts(4);
  for (std::uint64_t step = 0; step < 2000; ++step) {
    EXPECT_EQ(choose(logits, warm(2e-6F), step).token, 1) << "a hundredth is a lot when it is cold";
    ++counts[static_cast<std::size_t>(choose(logits, warm(std::numeric_limits<float>::max()), step).token)];
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 500, 100);
  }
  EXPECT_EQ(choose({3e38F, -3e38F}, warm(1e-5F)).token, 0);
}

TEST(SampleOnHostTest, PenaltiesMeetWhatWasSeen) {
  SamplingSettings settings;
  settings.repetition = 2.0F;
  std::vector<std::int32_t> seen{1, 0, 0};
  std::uint64_t step = 0;
  EXPECT_EQ(ops::sample_on_host(std::vector<float>{3, 2, 1}, settings, seen, step).token, 1) << "3 / 2 is below 2";
  EXPECT_EQ(seen, (std::vector<std::int32_t>{1, 1, 0}));
  EXPECT_EQ(ops::sample_on_host(std::vector<float>{-1, -1.5F, -1.75F}, settings, seen, step).token, 2)
      << "-1 · 2 and -1.5 · 2 are below -1.75";
  settings.repetition = 1.0F;
  settings.presence = 1.5F;
  seen = {5, 0, -1};
  EXPECT_EQ(ops::sample_on_host(std::vector<float>{3, 2, 1.75F}, settings, seen, step).token, 1);
  EXPECT_EQ(ops::sample_on_host(std::vector<float>{3, 2, 1.75F}, settings, seen, step).token, 2)
      << "what is subtracted does not grow with the count, and below 0 is not seen";
  EXPECT_EQ(step, 4U);
  seen = {std::numeric_limits<std::int32_t>::max()};
  EXPECT_EQ(ops::sample_on_host(std::vector<float>{3}, settings, seen, step).token, 0);
  EXPECT_EQ(seen[0], std::numeric_limits<std::int32_t>::max()) << "counts do not wrap around";
}

struct Case {
  std::size_t vocabulary;
  float temperature;
  std::int32_t top_k;
  float top_p;
  float repetition = 1.0F;
  float presence = 0.0F;
  float deviation = 2.0F;
  float min_p = 0.0F;
};

class SampleFloat64Test : public ::testing::TestWithParam<Case> {};

TEST_P(SampleFloat64Test, DrawsWhatFloat64Draws) {
  const Case& of = GetParam();
  SamplingSettings settings = warm(of.temperature, of.top_k, of.top_p);
  settings.repetition = of.repetition;
  settings.presence = of.presence;
  settings.min_p = of.min_p;
  const std::vector<float> logits = drawn_logits(of.vocabulary, 3, of.deviation);
  std::vector<std::int32_t> seen(of.vocabulary);
  for (std::size_t i = 0; i < seen.size(); i += 3) {
    seen[i] = 1;
  }
  const Kept kept = kept_in_float64(logits, seen, settings);
  int exact = 0;
  const int draws = of.vocabulary > 10'000 ? 20 : 400;
  for (int i = 0; i < draws; ++i) {
    auto step = static_cast<std::uint64_t>(i);
    std::vector<std::int32_t> counted = seen;
    const SampledToken chosen = ops::sample_on_host(logits, settings, counted, step);
    expect_as_in_float64(kept, chosen, ops::philox(settings.seed, static_cast<std::uint64_t>(i)), &exact);
  }
  EXPECT_GE(exact, draws * 9 / 10);
}

INSTANTIATE_TEST_SUITE_P(Cases, SampleFloat64Test,
                         ::testing::Values(Case{1, 1, 0, 1}, Case{2, 1, 0, 0.9F}, Case{37, 0.7F, 20, 0.8F},
                                           Case{1031, 0.7F, 20, 0.8F}, Case{1031, 1, 0, 1}, Case{1031, 1.5F, 0, 0.95F},
                                           Case{1031, 1, 100, 1, 1.3F, 0.5F}, Case{1031, 0.05F, 5000, 0.99F},
                                           Case{4099, 8, 700, 0.6F, 1.1F, -0.5F}, Case{4099, 1, 0, 0.9F, 1, 1.5F, 0.0F},
                                           Case{151'936, 0.7F, 20, 0.8F, 1, 0, 3}, Case{151'936, 1, 0, 0.95F, 1, 0, 1},
                                           Case{1031, 1, 0, 1, 1, 0, 2, 0.02F}, Case{37, 0.7F, 20, 0.8F, 1, 0, 2, 0.3F},
                                           Case{4099, 1.5F, 700, 0.95F, 1.1F, 0.5F, 2, 0.1F},
                                           Case{151'936, 1, 0, 1, 1, 0, 3, 0.001F}));

// Pearson's statistic over the tokens of at least 5 expected draws, against a bound that chance exceeds once in 10^6.
TEST(SampleOnHostTest, DrawsFollowTheProbabilities) {
  for (const SamplingSettings& settings : {warm(1), warm(1, 12), warm(0.8F, 0, 0.9F), warm(1.3F, 20, 0.8F)}) {
    const std::vector<float> logits = drawn_logits(40, 9, 1.0F);
    const Kept kept = kept_in_float64(logits, {}, settings);
    std::vector<int> counts(logits.size());
    constexpr int kDraws = 20'000;
    for (std::uint64_t step = 0; step < kDraws;) {
      ++counts[static_cast<std::size_t>(ops::sample_on_host(logits, settings, {}, step).token)];
    }
    double statistic = 0;
    double freedom = -1;
    int counted = 0;
    for (std::size_t i = 0; i < kept.ids.size(); ++i) {
      const double expected = kept.probabilities[i] * kDraws;
      ASSERT_GE(expected, 5);
      statistic += std::pow(counts[kept.ids[i]] - expected, 2) / expected;
      freedom += 1;
      counted += counts[kept.ids[i]];
    }
    EXPECT_EQ(counted, kDraws) << "tokens were drawn that are not kept";
    // Wilson and Hilferty's approximation of the quantile.
    const double bound = freedom * std::pow(1 - 2 / (9 * freedom) + 4.753 * std::sqrt(2 / (9 * freedom)), 3);
    EXPECT_LT(statistic, bound) << kept.ids.size() << " tokens";
  }
}

TEST(SampleOnHostTest, MinPKeepsTheTokensNearTheLikeliest) {
  const std::vector<float> logits{std::log(0.5F), std::log(0.3F), std::log(0.15F), std::log(0.05F)};
  const auto kept = [&](float min_p) {
    SamplingSettings settings = warm(1);
    settings.min_p = min_p;
    std::vector<bool> drawn(logits.size());
    for (std::uint64_t step = 0; step < 400;) {
      drawn[static_cast<std::size_t>(ops::sample_on_host(logits, settings, {}, step).token)] = true;
    }
    return drawn;
  };
  EXPECT_EQ(kept(0), (std::vector<bool>{true, true, true, true}));
  EXPECT_EQ(kept(0.2F), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(kept(0.5F), (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(kept(1), (std::vector<bool>{true, false, false, false}));
}

TEST(SampleOnHostTest, RefusesWhatDoesNotFit) {
  std::uint64_t step = 0;
  std::vector<std::int32_t> seen(3);
  EXPECT_THROW((void)ops::sample_on_host({}, {}, {}, step), Error);
  EXPECT_THROW((void)ops::sample_on_host(std::vector<float>(4), {}, seen, step), Error);
  EXPECT_THROW((void)ops::sample_on_host(std::vector<float>((1U << 20U) + 1), {}, {}, step), Error);
  EXPECT_EQ(step, 0U);
  EXPECT_EQ(ops::sample_on_host(std::vector<float>(1U << 20U), warm(1, 0, 1), {}, step).probability, 0x1p-20F);
}

TEST(SamplingSettingsTest, AreChecked) {
  using Spoil = std::function<void(SamplingSettings&)>;
  const std::pair<Spoil, const char*> cases[] = {
      {[](auto& of) { of.temperature = -0.5F; }, "temperature is -0.5"},
      {[](auto& of) { of.temperature = kNan; }, "temperature is nan; it must be a finite number"},
      {[](auto& of) { of.repetition = 0; }, "repetition penalty is 0"},
      {[](auto& of) { of.repetition = kInfinity; }, "repetition penalty is inf"},
      {[](auto& of) { of.presence = kNan; }, "presence penalty is nan"},
      {[](auto& of) { of.top_k = -1; }, "top_k is -1"},
      {[](auto& of) { of.top_p = 1.5F; }, "top_p is 1.5"},
      {[](auto& of) { of.top_p = -0.1F; }, "top_p is -0.1"},
      {[](auto& of) { of.top_p = kNan; }, "top_p is nan"},
      {[](auto& of) { of.min_p = -0.1F; }, "min_p is -0.1"},
      {[](auto& of) { of.min_p = 1.5F; }, "min_p is 1.5"},
      {[](auto& of) { of.min_p = kNan; }, "min_p is nan"}};
  for (const auto& [spoil, message] : cases) {
    SamplingSettings settings = warm(0.7F, 20, 0.8F);
    EXPECT_NO_THROW(ops::check_settings(settings));
    spoil(settings);
    try {
      ops::check_settings(settings);
      ADD_FAILURE() << "taken: " << message;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace pascaline::testing
