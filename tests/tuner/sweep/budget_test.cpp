#include "tuner/sweep/budget.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace pascaline::testing {
namespace {

constexpr AttainedRates kRates{1e6, 1e5, 0};

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

TEST(PlanTest, WindowsByAnotherObjectiveAndSitesTakeTime) {
  FinalsOptions finals;
  EXPECT_EQ(objective_windows_s(finals), 0);
  finals.objective = objective_options(Objective::energy);
  EXPECT_DOUBLE_EQ(objective_windows_s(finals), 3 * 3 * window_seconds(finals.objective, finals.energy_window_ms));
  const double energy_s = objective_windows_s(finals);
  finals.objective = objective_options(Objective::sustained);
  EXPECT_GT(objective_windows_s(finals), energy_s) << "the card has to become warm first";
  EXPECT_EQ(guessed_sites_s({0, 0}), 0);
  EXPECT_GT(guessed_sites_s({6, 2}), guessed_sites_s({3, 1}));
}

TEST(PlanTest, AShortLaunchLeavesLittleRoom) {
  SearchProgress tiny = example_progress();
  tiny.flops = tiny.bytes = 1;
  tiny.best_us = 3.9;
  tiny.best_at_half_us = 6;
  const double alone = gain(tiny);
  EXPECT_NEAR(expected_gain(tiny, {1e6, 1e5, 3.4}), tiny.count * (tiny.best_us - 3.4 / 1.1) / tiny.spent_s, 1e-9);
  EXPECT_LT(expected_gain(tiny, {1e6, 1e5, 3.4}), alone);
  EXPECT_DOUBLE_EQ(expected_gain(example_progress(), {1e6, 1e5, 3.4}), gain(example_progress()));

  SearchProgress shortest = tiny;
  shortest.best_us = 3.4;
  SearchProgress unusable = tiny;
  unusable.best_us = 0;
  EXPECT_DOUBLE_EQ(attained_rates(std::vector{example_progress(), shortest, tiny, unusable}).launch_us, 3.4);
  EXPECT_EQ(attained_rates(std::vector{example_progress()}).launch_us, 0) << "100 us are more than launching takes";
}

TEST(PlanTest, UntriedProblemsGoFirstTheSmallestBeforeAll) {
  SearchProgress untried;
  untried.flops = 1;
  SearchProgress larger = untried;
  larger.flops = 1e12;
  SearchProgress promising = example_progress();
  promising.count = 1e6;
  EXPECT_GT(gain(untried), gain(promising));
  EXPECT_GT(gain(untried), gain(larger));
  EXPECT_GT(gain(larger), gain(promising));
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

TEST(PlanTest, EstimateIsWhatEarlierSweepsTook) {
  TrialCost cost;
  EXPECT_FALSE(estimate_s({100, 2}, cost)) << "nothing is known";
  cost.ran = 5;
  cost.run_ms = 100;
  EXPECT_FALSE(estimate_s({100, 2}, cost)) << "no sweep has ended";
  cost.problems = 3;
  cost.problem_ms = 4000;
  EXPECT_DOUBLE_EQ(estimate_s({100, 2}, cost).value(), 2 * 4 + 100 * 0.1);
  cost.paced = 4;
  cost.pace_ms = 300;
  EXPECT_DOUBLE_EQ(estimate_s({100, 2}, cost).value(), 2 * 4 + 100 * 0.3);
}

// Five finalists and a baseline of a tenth of a second each.
FinalsNeed example_need() { return {{0.1, 0.1, 0.1, 0.1, 0.1}, 0.1, 40, 10, 2, 3}; }

TEST(PlanTest, FinalsSaveRoundsThenFinalistsThenRounds) {
  const FinalsNeed need = example_need();
  const auto all = fit_finals(need, 100);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->rounds, 40);
  EXPECT_EQ(all->finalists, 5U);
  const auto fewer_rounds = fit_finals(need, 30);
  ASSERT_TRUE(fewer_rounds);
  EXPECT_LT(fewer_rounds->rounds, 40);
  EXPECT_GE(fewer_rounds->rounds, 10);
  EXPECT_EQ(fewer_rounds->finalists, 5U);
  const auto fewer_finalists = fit_finals(need, 10);
  ASSERT_TRUE(fewer_finalists);
  EXPECT_EQ(fewer_finalists->rounds, 10);
  EXPECT_LT(fewer_finalists->finalists, 5U);
  EXPECT_GE(fewer_finalists->finalists, 1U);
  const auto least = fit_finals(need, 2);
  ASSERT_TRUE(least);
  EXPECT_EQ(least->finalists, 1U) << "the best and the baseline are the last to go";
  EXPECT_LT(least->rounds, 10);
  EXPECT_GE(least->rounds, 2);
  EXPECT_FALSE(fit_finals(need, 1));
  for (const double allowed_s : {100.0, 30.0, 10.0, 2.0}) {
    EXPECT_LE(finals_seconds(need, *fit_finals(need, allowed_s)), allowed_s);
  }
}

TEST(PlanTest, TimeIsKeptForFirstLooksAtSites) {
  EXPECT_EQ(first_sites_s({0, 5}, 100), 0);
  const double guessed_s = first_sites_s({10, 0}, 1e6);
  EXPECT_GT(guessed_s, 0);
  EXPECT_DOUBLE_EQ(first_sites_s({20, 0}, 1e6), 2 * guessed_s);
  EXPECT_DOUBLE_EQ(first_sites_s({10, 1e-3}, 1e6), guessed_s) << "the next ones may be slower";
  EXPECT_DOUBLE_EQ(first_sites_s({10, 7}, 1e6), 140);
  EXPECT_DOUBLE_EQ(first_sites_s({10, 7}, 100), 30) << "of a limit no more than that";
}

}  // namespace
}  // namespace pascaline::testing
