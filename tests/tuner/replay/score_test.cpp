#include "tuner/replay/score.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "tests/tuner/replay/recorded.hpp"

namespace pascaline::testing {
namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Times 1 to 10 us in no order. By hand: the optimum is 1, the median 5.5. The budget's target is 1 + 4.5 x 0.05,
/// which is met at place 9 of the descending times: K = ceil(9 / (11 - 9)) = 5. The start's is 1 + 4.5 x 0.99, met at
/// place 5: K = ceil(5 / (11 - 5)) = 1.
const std::vector<double> kTenTimes{4, 9, 1, 6, 10, 3, 8, 2, 7, 5};

ReplayRun run_of(const std::vector<double>& best_us, double cost_ms = 1) {
  ReplayRun run;
  run.best_us = best_us;
  for (std::size_t i = 0; i < best_us.size(); ++i) {
    run.cost_ms.push_back(cost_ms * static_cast<double>(i + 1));
  }
  return run;
}

TEST(ScoreScaleTest, TenTimesByHand) {
  const ScoreScale scale(RecordedDomain{recorded_times(kTenTimes)});
  EXPECT_DOUBLE_EQ(scale.run_budget_ms(), 5.5);
  // B(k) = D[round(11 k / (k + 1))] of D = 10, 9, ... 1, at most its last.
  EXPECT_DOUBLE_EQ(scale.random_us(1), 4);
  EXPECT_DOUBLE_EQ(scale.random_us(2), 3);
  EXPECT_DOUBLE_EQ(scale.random_us(3), 2);
  EXPECT_DOUBLE_EQ(scale.random_us(4), 1);
  EXPECT_DOUBLE_EQ(scale.random_us(5), 1);
  EXPECT_DOUBLE_EQ(scale.random_us(0), 4) << "one draw at least";
  EXPECT_DOUBLE_EQ(scale.random_us(1e9), 1);
  // Between 4 and 3, with slopes 0 (the first) and -1 (the harmonic mean of two -1).
  EXPECT_DOUBLE_EQ(scale.random_us(1.5), 3.625);
}

TEST(ScoreScaleTest, RandomSearchFindsNothingWorseAsItGoesOn) {
  const RecordedDomain space(recorded_bowl("bowl", 20, 10));
  const ScoreScale scale(space);
  double before = 1e9;
  for (double time_ms = 0; time_ms < scale.run_budget_ms(); time_ms += scale.run_budget_ms() / 300) {
    const double now = scale.random_us(time_ms);
    EXPECT_LE(now, before * (1 + 1e-12)) << time_ms;
    EXPECT_GE(now, space.optimum_us() * (1 - 1e-12));
    before = now;
  }
}

TEST(ScoreScaleTest, CostsAreWhatTheRecordSays) {
  RecordedSpace recorded = recorded_times({4, 9, 1, 6, 10, 3, 8, 2, 7, 5, 0, 0}, 20);
  recorded.trials[10].measure_ms = 2;
  recorded.trials[11].measure_ms = 4;
  recorded.trials[0].compile_ms = 10;
  const RecordedDomain space(recorded);
  const ScoreScale scale(space);
  // The median cost is 20; the failed do not count among the ten times.
  EXPECT_DOUBLE_EQ(scale.run_budget_ms(), 1.1 * 5 * 20);
  // A draw: 21, the mean of those that worked, and two in twelve times 3, the mean of the failed.
  const double draw_ms = 21.5;
  EXPECT_DOUBLE_EQ(scale.random_us(2 * draw_ms), 3);
  EXPECT_DOUBLE_EQ(scale.random_us(3 * draw_ms), 2);
  EXPECT_DOUBLE_EQ(scale.cost_ms(space.trials()[0]), 30);
  EXPECT_DOUBLE_EQ(scale.cost_ms(space.trials()[11]), 4);
}

TEST(ScoreScaleTest, WithoutCostsEveryEvaluationCostsTheSame) {
  const RecordedDomain space(recorded_times({4, 9, 1, 6, 10, 3, 8, 2, 7, 5, 0, 0}));
  const ScoreScale scale(space);
  EXPECT_DOUBLE_EQ(scale.cost_ms(space.trials()[0]), 1);
  EXPECT_DOUBLE_EQ(scale.cost_ms(space.trials()[11]), 1) << "a failure, too";
  EXPECT_DOUBLE_EQ(scale.run_budget_ms(), 5.5);
}

TEST(ScoreScaleTest, CurveByHand) {
  const ScoreScale scale(RecordedDomain{recorded_times(kTenTimes)});
  // Three runs: their median rank after each evaluation is that of 6, 3, 3, 3, 1.
  const std::vector<double> curve = scale.curve({run_of({8, 5, 5, 5, 1}), run_of({6, 3, 3, 3, 2}), run_of({5, 2, 1})});
  ASSERT_EQ(curve.size(), static_cast<std::size_t>(ScoreScale::kPoints));
  const auto score_at = [&](int i) {
    const double time_ms = 1 + 4.0 * i / 49;
    const double found = time_ms < 2 ? 6 : time_ms < 5 ? 3 : 1;
    return (scale.random_us(time_ms) - found) / (scale.random_us(time_ms) - 1);
  };
  EXPECT_NEAR(curve[0], (4.0 - 6) / (4 - 1), 1e-12);
  for (int i = 0; i < 36; ++i) {  // up to 3.9 evaluations, where random search has not found the optimum yet
    EXPECT_NEAR(curve[static_cast<std::size_t>(i)], score_at(i), 1e-9) << i;
  }
  EXPECT_EQ(curve.back(), 0) << "random search has found the optimum, too: nothing can be gained";
}

TEST(ScoreScaleTest, NothingFoundYetCountsAsTheWorst) {
  const double none = std::numeric_limits<double>::infinity();
  const ScoreScale scale(RecordedDomain{recorded_times(kTenTimes)});
  const std::vector<double> failing = scale.curve({run_of({none, none, none, none, none})});
  EXPECT_NEAR(failing[0], (4.0 - 10) / 3, 1e-12);
  const std::vector<double> late = scale.curve({run_of({1}, 3)});
  EXPECT_NEAR(late[0], (4.0 - 10) / 3, 1e-12) << "its first evaluation is not over";
  EXPECT_NEAR(late[30], 1, 1e-12) << "and at 3.4 it has found the optimum";
  EXPECT_EQ(scale.curve({ReplayRun()}), failing) << "nor has one that tried nothing";
}

TEST(ScoreScaleTest, OracleScoresOne) {
  for (const double cost_ms : {0.0, 10.0}) {
    const RecordedDomain space(recorded_bowl("bowl", 10, cost_ms));
    const ScoreScale scale(space);
    const double score = mean_of(scale.curve({run_of({space.optimum_us()}, 1e-3)}));
    EXPECT_GT(score, 0.95);
    EXPECT_LE(score, 1);
  }
}

TEST(ScoreScaleTest, OneConfigurationThatWorks) {
  for (const std::vector<double>& times : {std::vector<double>{7}, std::vector<double>{0, 7, 0}}) {
    const RecordedDomain space(recorded_times(times, 3));
    const ScoreScale scale(space);
    EXPECT_GT(scale.run_budget_ms(), 0);
    EXPECT_EQ(scale.random_us(1), 7);
    for (const double point : scale.curve({run_of({7})})) {
      EXPECT_EQ(point, 0) << "there is nothing to gain";
    }
  }
}

TEST(ScoreScaleTest, CostsOfFailuresAlone) {
  RecordedSpace recorded = recorded_times({5, 4, 0, 0, 0});
  for (std::size_t i = 2; i < 5; ++i) {
    recorded.trials[i].compile_ms = 100;
  }
  const ScoreScale scale(RecordedDomain{recorded});
  EXPECT_TRUE(std::isfinite(scale.random_us(50)));
  for (const double point : scale.curve({run_of({5, 4}, 100)})) {
    EXPECT_TRUE(std::isfinite(point));
  }
}

TEST(ScoreScaleTest, RandomSearchScoresAboutNothing) {
  ReplayOptions options;
  options.searchers = {"random"};
  options.repeats = 200;
  const std::atomic<bool> stop{false};
  for (const double cost_ms : {0.0, 10.0}) {
    const auto results = replay({recorded_bowl("bowl", cost_ms > 0 ? 15 : 0, cost_ms)}, options, {}, stop);
    ASSERT_EQ(results.size(), 1U);
    std::printf("random search scores %.3f\n", results[0].score.value());
    EXPECT_NEAR(results[0].score.value(), 0, 0.15);
    EXPECT_DOUBLE_EQ(results[0].score.value(), mean_of(results[0].score_curve));
  }
}

}  // namespace
}  // namespace pascaline::testing
