#include "core/model_time.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/log_speedup.hpp"
#include "core/util/statistics.hpp"

namespace pascaline::testing {
namespace {

TimeSummary known_by(double median_us, double half_width) {
  return {median_us, median_us * (1 - half_width), median_us * (1 + half_width), 30};
}

TEST(ModelTimeTest, IsCallsTimesTimes) {
  const std::vector<ModelPart> parts{{2, known_by(100, 0.01), known_by(50, 0.01), 0.999}, {3, known_by(10, 0.01)}};
  const ModelTime time = model_time(parts);
  EXPECT_DOUBLE_EQ(time.default_us, 230);
  EXPECT_DOUBLE_EQ(time.best_us, 130);
  EXPECT_DOUBLE_EQ(time.speedup(), 230.0 / 130);
  EXPECT_LT(time.speedup_low, time.speedup());
  EXPECT_GT(time.speedup_high, time.speedup());
}

TEST(ModelTimeTest, OfNothingIsNoFaster) {
  EXPECT_EQ(model_time({}).speedup(), 1);
  EXPECT_EQ(model_time({}).speedup_low, 1);
  const std::vector<ModelPart> unknown{{2, {}}};
  EXPECT_EQ(model_time(unknown).speedup(), 1);
}

// However little its time is known, it is the same on both sides.
TEST(ModelTimeTest, WhatStaysAtItsDefaultContributesARatioOfExactlyOne) {
  const TimeSummary vague = known_by(100, 2);
  const std::vector<ModelPart> parts{{1, vague}, {1, vague, vague, 0.5}};
  const ModelTime time = model_time(parts);
  EXPECT_EQ(time.speedup(), 1);
  EXPECT_EQ(time.speedup_low, 1);
  EXPECT_EQ(time.speedup_high, 1);
}

TEST(ModelTimeTest, OneProblemIsAsSureAsItsFinals) {
  const TimeSummary before = known_by(100, 0.02);
  const TimeSummary after = known_by(80, 0.02);
  const std::vector<ModelPart> parts{{7, before, after, 0.999}};
  const ModelTime time = model_time(parts);
  const double half = 1.96 * standard_error(*log_speedup(after, before, 0.999));
  EXPECT_NEAR(std::log(time.speedup_high / time.speedup()), half, 1e-9);
  EXPECT_NEAR(std::log(time.speedup() / time.speedup_low), half, 1e-9);
}

// Times that scatter by a factor leave medians uncertain, but not which side is faster, as both were timed in turn.
TEST(ModelTimeTest, AWinnerThatIsSurelyFasterExcludesOne) {
  const TimeSummary before{100, 20, 400, 60};
  const TimeSummary after{60, 15, 300, 60};
  const auto low_by = [&](double confidence) {
    const std::vector<ModelPart> parts{{1, before, after, confidence}, {5, known_by(20, 3)}};
    return model_time(parts).speedup_low;
  };
  EXPECT_GT(low_by(0.999), 1);
  EXPECT_LT(low_by(0.9), 1);
}

// Drawn as finals time two configurations in turn, on a machine whose times scatter by a fifth.
TEST(ModelTimeTest, TheIntervalHoldsTheSpeedupNineTimesInTenAtLeast) {
  struct Truth {
    double calls;
    double default_us;
    double winner_us;
  };
  const std::vector<Truth> truths{{1, 500, 350}, {10, 40, 36}, {3, 100, 100}};
  const double speedup = (500 + 400 + 300) / (350.0 + 360 + 300);
  std::mt19937_64 generator(7);
  const auto drawn = [&](double median_us) {
    std::vector<Sample> samples(36);
    for (Sample& sample : samples) {
      sample.time_us = median_us * std::exp(0.2 * std::normal_distribution<double>()(generator));
    }
    return samples;
  };
  int held = 0;
  constexpr int kTimes = 400;
  for (int i = 0; i < kTimes; ++i) {
    std::vector<ModelPart> parts;
    for (const Truth& truth : truths) {
      const std::vector<Sample> before = drawn(truth.default_us);
      const std::vector<Sample> after = drawn(truth.winner_us);
      const auto times_of = [](const std::vector<Sample>& samples) {
        std::vector<double> times;
        for (const Sample& sample : samples) {
          times.push_back(sample.time_us);
        }
        return times;
      };
      const double p = mann_whitney_p(times_of(after), times_of(before));
      ModelPart part{truth.calls, summarize(before)};
      if (truth.winner_us < truth.default_us) {
        part.with_winner = summarize(after);
        part.confidence = 1 - p / 2;
      }
      parts.push_back(part);
    }
    const ModelTime time = model_time(parts);
    held += time.speedup_low <= speedup && speedup <= time.speedup_high ? 1 : 0;
  }
  EXPECT_GE(held, kTimes * 9 / 10);
  EXPECT_LE(held, kTimes * 995 / 1000);
}

TEST(ModelTimeTest, AProvisionalWinnerIsNoSurerThanItsConfidence) {
  const std::vector<ModelPart> parts{{1, known_by(100, 0.001), known_by(90, 0.001), 0.95}};
  EXPECT_LT(model_time(parts).speedup_low, 1);
}

TEST(ModelTimeTest, FewSamplesAreNoEvidence) {
  const std::vector<ModelPart> parts{{1, {100, 100, 100, 1}, TimeSummary{50, 50, 50, 1}, 0.95}};
  EXPECT_LT(model_time(parts).speedup_low, 1);
}

TEST(ModelTimeTest, TheShareOfAnEstimatedDefaultWidensTheInterval) {
  const auto width_with = [](const TimeSummary& other) {
    const std::vector<ModelPart> parts{{1, known_by(100, 0.01), known_by(50, 0.01), 0.9999}, {1, other}};
    const ModelTime time = model_time(parts);
    return time.speedup_high / time.speedup_low;
  };
  const EstimatedDefaults near{{{"k", 100}}};
  const EstimatedDefaults far{{{"k", 100}}, 10};
  EXPECT_GT(width_with(near.of("k").value()), 1.2 * width_with(known_by(100, 0.01)));
  EXPECT_GT(width_with(far.of("k").value()), 1.2 * width_with(near.of("k").value()));
  EXPECT_FALSE(near.of("other"));
}

TEST(ModelCurveTest, FallsWhereAWinnerIsDecided) {
  const std::vector<ProblemHistory> problems{{100, {{-5, 0.9}, {20, 0.5}}}, {50, {{10, 0.8}, {30, 0.8}}}, {10, {}}};
  const std::vector<ModelPoint> expected{
      {0, 90 + 50 + 10, 160}, {10, 90 + 40 + 10, 160}, {20, 50 + 40 + 10, 160}, {60, 50 + 40 + 10, 160}};
  EXPECT_EQ(model_curve(problems, 60), expected);
}

TEST(ModelCurveTest, WithoutDecisionsStaysWhereItBegan) {
  const std::vector<ProblemHistory> problems{{100, {}}};
  EXPECT_EQ(model_curve(problems, 5), (std::vector<ModelPoint>{{0, 100, 100}, {5, 100, 100}}));
}

TEST(ModelCurveTest, EndsNoEarlierThanItsLastDecision) {
  const std::vector<ProblemHistory> problems{{100, {{9, 0.5}}}};
  EXPECT_EQ(model_curve(problems, 5).back(), (ModelPoint{9, 50, 100}));
}

}  // namespace
}  // namespace pascaline::testing
