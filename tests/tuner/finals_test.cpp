#include "tuner/finals.hpp"

#include <gtest/gtest.h>

#include "core/statistics.hpp"
#include "tests/tuner/relay_device.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

Trial trial_of(bool is_default, const std::vector<double>& times) {
  Trial trial;
  trial.is_default = is_default;
  for (const double time_us : times) {
    trial.samples.emplace_back().time_us = time_us;
  }
  trial.time = summarize(trial.samples);
  return trial;
}

std::vector<double> around(double center_us, double step_us = 0.1) {
  std::vector<double> times;
  for (int i = -10; i <= 10; ++i) {
    times.push_back(center_us + i * step_us);
  }
  return times;
}

FinalsResult decided(std::vector<Trial> trials) {
  FinalsResult result;
  result.trials = std::move(trials);
  decide_finals(result, FinalsOptions());
  return result;
}

TEST(DecideFinals, TiesGoToTheDefault) {
  const FinalsResult result = decided({trial_of(false, around(9.98)), trial_of(true, around(10))});
  EXPECT_EQ(result.winner, 1U);
  EXPECT_EQ(result.confidence, 0.5);
  ASSERT_TRUE(result.baseline);
  EXPECT_EQ(result.baseline->median_us, 10);
}

TEST(DecideFinals, SignificantlyFasterWinsWithItsConfidence) {
  const FinalsResult result =
      decided({trial_of(false, around(9.5)), trial_of(true, around(10)), trial_of(false, around(8))});
  EXPECT_EQ(result.winner, 2U);
  EXPECT_GT(result.confidence, 0.999);
  EXPECT_LE(result.confidence, 1.0);
  EXPECT_EQ(result.baseline->median_us, 10);
  const FinalsResult close = decided({trial_of(false, around(9.5)), trial_of(true, around(10))});
  EXPECT_EQ(close.winner, 0U);
  EXPECT_GT(close.confidence, 0.975);
  EXPECT_LT(close.confidence, result.confidence);
}

TEST(DecideFinals, FastestDefaultStays) {
  const FinalsResult result = decided({trial_of(false, around(12)), trial_of(true, around(10))});
  EXPECT_EQ(result.winner, 1U);
  EXPECT_EQ(result.confidence, 0.5);
}

TEST(DecideFinals, WithoutDefaultTheFastestWins) {
  const FinalsResult result = decided({trial_of(false, around(12)), trial_of(false, around(10))});
  EXPECT_EQ(result.winner, 1U);
  EXPECT_FALSE(result.baseline);
  EXPECT_EQ(result.confidence, 1.0);
}

// Its median is lower, yet it is slower far more often: a two-sided test alone would take it.
TEST(DecideFinals, LowerMedianButSlowerAsARuleDoesNotWin) {
  std::vector<double> torn(101, 9.9);
  std::fill(torn.begin(), torn.begin() + 50, 50.0);
  std::vector<double> steady(101, 10.0);
  std::fill(steady.begin(), steady.begin() + 49, 9.0);
  const FinalsResult result = decided({trial_of(false, torn), trial_of(true, steady)});
  ASSERT_LT(result.trials[0].time->median_us, result.trials[1].time->median_us);
  EXPECT_EQ(result.winner, 1U);
}

TEST(DecideFinals, SamplesThatDoNotCountDecideNothing) {
  Trial fast = trial_of(false, around(10));
  for (int i = 0; i < 100; ++i) {
    fast.samples.push_back({1.0, SampleMark::clock_drift, {}, {}, {}});
  }
  fast.time = summarize(fast.samples);
  EXPECT_EQ(decided({fast, trial_of(true, around(10))}).winner, 1U);
}

class RunFinalsTest : public ::testing::Test {
 protected:
  ToyBench bench_{toy_json({kRight, kNotANumber, kDeadlock})};
  RelayDevice device_;
  TrialRunner runner_{device_, bench_.bound(), bench_.reference(), quick_measure(), 1};

  [[nodiscard]] std::pair<Config, Binary> finalist(std::int64_t block, Fault fault = kRight) const {
    const Config config = toy_config(block, fault);
    return {config, bench_.compile(config).result.binary};
  }
};

TEST_F(RunFinalsTest, TimesFinalistsInTurn) {
  FinalsOptions options;
  options.rounds = 5;
  device_.time_us = [](int number) { return number % 6 < 3 ? 10.0 + number % 3 : 5.0 + number % 2; };
  const auto result = run_finals(runner_, {finalist(32), finalist(64)}, options);
  ASSERT_TRUE(result);
  ASSERT_EQ(result->trials.size(), 2U);
  EXPECT_EQ(device_.timed, 30);
  EXPECT_FALSE(result->trials[0].is_default);
  EXPECT_TRUE(result->trials[1].is_default);
  for (const Trial& trial : result->trials) {
    EXPECT_EQ(trial.stage, TrialStage::finals);
    EXPECT_EQ(trial.status, TrialStatus::ok);
    EXPECT_EQ(trial.samples.size(), 15U);
    EXPECT_FALSE(trial.binary_hash.empty());
  }
}

TEST_F(RunFinalsTest, FinalistsThatFailNowAreLeftOut) {
  FinalsOptions options;
  options.rounds = 2;
  const auto result =
      run_finals(runner_, {finalist(32, kDeadlock), finalist(32), finalist(64, kDeadlock), finalist(64)}, options);
  ASSERT_TRUE(result);
  ASSERT_EQ(result->trials.size(), 2U);
  EXPECT_EQ(result->trials[0].config, toy_config(32));
  EXPECT_EQ(result->trials[1].config, toy_config(64));
  EXPECT_EQ(result->trials[1].samples.size(), 6U);
  EXPECT_EQ(device_.resets, 2);
}

TEST_F(RunFinalsTest, NothingLeftIsNoResult) {
  EXPECT_FALSE(run_finals(runner_, {}, FinalsOptions()));
  EXPECT_FALSE(run_finals(runner_, {finalist(64, kDeadlock)}, FinalsOptions()));
}

}  // namespace
}  // namespace pascaline::testing
