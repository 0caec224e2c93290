#include "tuner/plan.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace pascaline::testing {
namespace {

constexpr AttainedRates kRates{1e6, 1e5};

// Far from the rates above, after as many trials as tell something.
SearchProgress example_progress() {
  SearchProgress problem;
  problem.count = 10;
  problem.flops = 1e7;
  problem.bytes = 1e6;
  problem.best_us = 100;
  problem.best_at_half_us = 140;
  problem.trials = 64;
  problem.spent_s = 20;
  return problem;
}

double gain(const SearchProgress& problem) { return expected_gain(problem, kRates); }

TEST(PlanTest, AttainedRatesAreTheHighestOfAnyBest) {
  SearchProgress compute = example_progress();
  compute.flops = 1e9;
  compute.bytes = 1e3;
  SearchProgress memory = example_progress();
  memory.flops = 1e3;
  memory.bytes = 1e8;
  SearchProgress unusable = example_progress();
  unusable.best_us = 0;
  unusable.flops = 1e30;
  const std::vector<SearchProgress> problems{compute, memory, unusable};
  const AttainedRates rates = attained_rates(problems);
  EXPECT_DOUBLE_EQ(rates.flops_per_us, 1e7);
  EXPECT_DOUBLE_EQ(rates.bytes_per_us, 1e6);
  EXPECT_EQ(attained_rates({}).flops_per_us, 0);
}

TEST(PlanTest, UntriedProblemsGoFirstByTheirWork) {
  SearchProgress untried;
  untried.flops = 1;
  SearchProgress larger = untried;
  larger.flops = 1e12;
  SearchProgress more_often = larger;
  more_often.count = 28;
  SearchProgress promising = example_progress();
  promising.count = 1e6;
  EXPECT_GT(gain(untried), gain(promising));
  EXPECT_GT(gain(larger), gain(untried));
  EXPECT_GT(gain(more_often), gain(larger));
}

TEST(PlanTest, MoreCallsMoreTimeAndMoreRoomGainMore) {
  const SearchProgress problem = example_progress();
  SearchProgress often = problem;
  often.count *= 3;
  EXPECT_NEAR(gain(often), 3 * gain(problem), 1e-9);
  SearchProgress longer = problem;
  longer.best_us *= 10;
  longer.best_at_half_us *= 10;
  longer.flops *= 10;
  longer.bytes *= 10;
  EXPECT_NEAR(gain(longer), 10 * gain(problem), 1e-9);
  SearchProgress little_room = problem;
  little_room.flops = 1e8;  // best at the attained rate
  EXPECT_LT(gain(little_room), gain(problem));
  SearchProgress cheaper = problem;
  cheaper.spent_s /= 4;
  EXPECT_NEAR(gain(cheaper), 4 * gain(problem), 1e-9) << "the next doubling takes less time";
}

TEST(PlanTest, StagnationMovesOn) {
  const SearchProgress improving = example_progress();
  SearchProgress stagnant = improving;
  stagnant.best_at_half_us = stagnant.best_us;
  EXPECT_LT(gain(stagnant), 0.5 * gain(improving));
  SearchProgress long_stagnant = stagnant;
  long_stagnant.trials *= 10;
  EXPECT_LT(gain(long_stagnant), 0.5 * gain(stagnant)) << "the prior counts less with every trial";
  EXPECT_GT(gain(long_stagnant), 0);
}

TEST(PlanTest, AtTheRooflineLittleIsExpected) {
  SearchProgress memory_bound = example_progress();
  memory_bound.bytes = 1e7;  // 100 us at the attained rate
  EXPECT_LE(gain(memory_bound), memory_bound.count * memory_bound.best_us * 0.1 / memory_bound.spent_s);
  SearchProgress beyond = memory_bound;
  beyond.bytes = 2e7;
  EXPECT_EQ(gain(beyond), 0) << "never negative";
}

TEST(PlanTest, NothingUsableWaitsAndNothingKnownOfRatesIsNoLimit) {
  SearchProgress hopeless = example_progress();
  hopeless.best_us = 0;
  EXPECT_EQ(gain(hopeless), 0);
  EXPECT_GT(expected_gain(example_progress(), {}), 0);
  SearchProgress lucky = example_progress();
  lucky.best_at_half_us = 0;  // nothing usable in the first half
  EXPECT_GT(gain(lucky), 0);
  SearchProgress unmeasured = example_progress();
  unmeasured.spent_s = 0;
  EXPECT_LT(gain(unmeasured), 1e12) << "still behind the untried";
}

TEST(PlanTest, EstimateIsTheSlowerOfCompilingAndMeasuring) {
  EXPECT_DOUBLE_EQ(estimate_trial(800, 100, 2).seconds, 0.4);
  EXPECT_DOUBLE_EQ(estimate_trial(800, 100, 16).seconds, 0.1);
  EXPECT_DOUBLE_EQ(estimate_trial(800, 100, 0).seconds, 0.8);
  EXPECT_TRUE(estimate_trial(800, 100, 1).from_history);
  EXPECT_FALSE(estimate_trial(800, std::nullopt, 1).from_history);
  EXPECT_FALSE(estimate_trial(std::nullopt, 100, 1).from_history);
  EXPECT_GT(estimate_trial(std::nullopt, std::nullopt, 1).seconds, 0);
}

}  // namespace
}  // namespace pascaline::testing
