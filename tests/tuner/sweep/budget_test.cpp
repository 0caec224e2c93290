#include "tuner/sweep/budget.hpp"

#include <gtest/gtest.h>

#include "tuner/finals/objective.hpp"

namespace pascaline::testing {
namespace {

TEST(PlanTest, WindowsByAnotherObjectiveTakeTime) {
  FinalsOptions finals;
  EXPECT_EQ(objective_windows_s(finals), 0);
  finals.objective = objective_of(Objective::energy).defaults();
  EXPECT_DOUBLE_EQ(objective_windows_s(finals), 3 * 3 * objective_of(finals).window_s(finals));
  const double energy_s = objective_windows_s(finals);
  finals.objective = objective_of(Objective::sustained).defaults();
  EXPECT_GT(objective_windows_s(finals), energy_s) << "the card has to become warm first";
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

}  // namespace
}  // namespace pascaline::testing
