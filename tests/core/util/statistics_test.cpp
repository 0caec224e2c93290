#include "core/util/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace pascaline {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Sample> samples_of(const std::vector<double>& times) {
  std::vector<Sample> samples;
  for (const double time : times) {
    samples.emplace_back().time_us = time;
  }
  return samples;
}

// 1, 2, … n: the bounds are the ranks themselves.
TimeSummary summary_of_ranks(int n) {
  std::vector<double> times;
  for (int i = n; i > 0; --i) {
    times.push_back(i);
  }
  return summarize(samples_of(times));
}

TEST(SummarizeTest, MedianOfOddAndEven) {
  EXPECT_DOUBLE_EQ(summarize(samples_of({3, 1, 2})).median_us, 2);
  EXPECT_DOUBLE_EQ(summarize(samples_of({4, 1, 3, 2})).median_us, 2.5);
  EXPECT_DOUBLE_EQ(summarize(samples_of({7})).median_us, 7);
}

TEST(SummarizeTest, OnlyCountedSamplesCount) {
  std::vector<Sample> samples = samples_of({1, 2, 3, 1000});
  samples.back().mark = SampleMark::canary_drift;
  const TimeSummary summary = summarize(samples);
  EXPECT_EQ(summary.count, 3);
  EXPECT_DOUBLE_EQ(summary.median_us, 2);
  EXPECT_DOUBLE_EQ(summary.high_us, 3);
}

TEST(SummarizeTest, NothingCountedIsAllZero) {
  std::vector<Sample> samples = samples_of({5});
  samples.front().mark = SampleMark::thermal_throttle;
  for (const auto& list : {samples, std::vector<Sample>{}}) {
    const TimeSummary summary = summarize(list);
    EXPECT_EQ(summary.count, 0);
    EXPECT_EQ(summary.median_us, 0);
    EXPECT_EQ(relative_half_width(summary), kInfinity);
  }
}

// Lower ranks of the 95 % interval of the median, as tables of the sign test's interval give them.
TEST(SummarizeTest, RanksAreThoseOfTheTables) {
  const int lower[] = {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 8, 8, 8, 9, 9, 10};
  for (int n = 6; n <= 30; ++n) {
    const TimeSummary summary = summary_of_ranks(n);
    EXPECT_EQ(summary.low_us, lower[n - 6]) << n;
    EXPECT_EQ(summary.high_us, n + 1 - lower[n - 6]) << n;
  }
  for (int n = 1; n < 6; ++n) {
    EXPECT_EQ(summary_of_ranks(n).low_us, 1);
    EXPECT_EQ(summary_of_ranks(n).high_us, n);
  }
}

// P(low <= median <= high) = 1 - 2 P(Binomial(n, 1/2) < r).
TEST(SummarizeTest, ExactCoverageIsAtLeastNinetyFivePercentAndNotWasteful) {
  for (int n = 6; n <= 1000; ++n) {
    const int rank = static_cast<int>(summary_of_ranks(n).low_us);
    const auto below = [&](int r) {
      double sum = 0;
      for (int k = 0; k < r; ++k) {
        sum += std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0) - n * std::log(2.0));
      }
      return sum;
    };
    EXPECT_LE(below(rank), 0.025 + 1e-9) << n;
    EXPECT_GT(below(rank + 2), 0.025) << n;
  }
}

TEST(SummarizeTest, SimulatedCoverageOfASkewedDistribution) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> draw(0.0, 0.8);  // median 1
  for (const int n : {8, 20, 50, 120}) {
    int covered = 0;
    constexpr int kRounds = 4000;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<double> times(static_cast<std::size_t>(n));
      std::generate(times.begin(), times.end(), [&] { return draw(random); });
      const TimeSummary summary = summarize(samples_of(times));
      covered += summary.low_us <= 1.0 && 1.0 <= summary.high_us ? 1 : 0;
    }
    EXPECT_GT(static_cast<double>(covered) / kRounds, 0.94) << n;
    EXPECT_LT(static_cast<double>(covered) / kRounds, 0.995) << n;
  }
}

TEST(SummarizeTest, NanMakesEveryComparisonFail) {
  const TimeSummary summary = summarize(samples_of({1, kNan, 3, 2, 5, 4, 6}));
  EXPECT_EQ(summary.count, 7);
  EXPECT_TRUE(std::isnan(summary.median_us));
  EXPECT_TRUE(std::isnan(summary.low_us));
  EXPECT_TRUE(std::isnan(summary.high_us));
  EXPECT_EQ(relative_half_width(summary), kInfinity);
}

TEST(RelativeHalfWidthTest, IsHalfTheIntervalOverTheMedian) {
  EXPECT_DOUBLE_EQ(relative_half_width({100, 98, 106, 10}), 0.04);
  EXPECT_EQ(relative_half_width({-1, -2, 0, 10}), kInfinity);
  EXPECT_EQ(relative_half_width({kInfinity, 1, kInfinity, 3}), kInfinity);
}

TEST(ProbabilityFasterTest, CountsPairs) {
  const std::vector<double> low{1, 2, 3};
  const std::vector<double> high{4, 5, 6};
  EXPECT_DOUBLE_EQ(probability_faster(low, high), 1.0);
  EXPECT_DOUBLE_EQ(probability_faster(high, low), 0.0);
  EXPECT_DOUBLE_EQ(probability_faster(low, low), 0.5);
  EXPECT_DOUBLE_EQ(probability_faster(std::vector<double>{1, 4}, std::vector<double>{2, 4, 3}), (3 + 0.5) / 6);
  EXPECT_DOUBLE_EQ(probability_faster({}, low), 0.5);
  EXPECT_DOUBLE_EQ(probability_faster(std::vector<double>{kNan, 1}, high), 0.5);
}

TEST(MannWhitneyTest, AgreesWithHandComputedValues) {
  const std::vector<double> low{1, 2, 3, 4, 5};
  const std::vector<double> high{6, 7, 8, 9, 10};
  // U = 0, mean 12.5, variance 25 * 11 / 12, continuity 0.5: z = 12 / 4.7871 = 2.5067.
  EXPECT_NEAR(mann_whitney_p(low, high), 0.012186, 1e-5);
  EXPECT_DOUBLE_EQ(mann_whitney_p(low, high), mann_whitney_p(high, low));
  // Ties: ranks of {1, 2, 2, 3} against {2, 3, 4, 4}; U = 2.5, groups of 3, 2 and 2 tied: 24 + 6 + 6,
  // variance 16 / 12 * (9 - 36 / 56) = 11.142857, z = (5.5 - 0.5) / 3.338092 = 1.497862.
  EXPECT_NEAR(mann_whitney_p(std::vector<double>{1, 2, 2, 3}, std::vector<double>{2, 3, 4, 4}), 0.134169, 1e-5);
}

TEST(MannWhitneyTest, NoEvidenceIsOne) {
  const std::vector<double> some{1, 2, 3};
  EXPECT_DOUBLE_EQ(mann_whitney_p(some, some), 1.0);
  EXPECT_DOUBLE_EQ(mann_whitney_p(std::vector<double>{2, 2}, std::vector<double>{2, 2, 2}), 1.0);
  EXPECT_DOUBLE_EQ(mann_whitney_p({}, some), 1.0);
  EXPECT_DOUBLE_EQ(mann_whitney_p(some, {}), 1.0);
  EXPECT_DOUBLE_EQ(mann_whitney_p(std::vector<double>{1, kNan}, some), 1.0);
  EXPECT_DOUBLE_EQ(mann_whitney_p(some, std::vector<double>{kNan}), 1.0);
}

TEST(MannWhitneyTest, FalseAlarmsAreAsRareAsTheirLevelSays) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> draw;
  int alarms = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> a(15);
    std::vector<double> b(20);
    std::generate(a.begin(), a.end(), [&] { return draw(random); });
    std::generate(b.begin(), b.end(), [&] { return draw(random); });
    alarms += mann_whitney_p(a, b) < 0.05 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(alarms) / kRounds, 0.05, 0.015);
}

TEST(SignTest, AgreesWithHandComputedValues) {
  const std::vector<double> zeros(10, 0.0);
  std::vector<double> a(10, -1.0);
  EXPECT_NEAR(sign_test_p(a, zeros), 2.0 / 1024, 1e-12);
  a[0] = 1;
  EXPECT_NEAR(sign_test_p(a, zeros), 2.0 * 11 / 1024, 1e-12);
  a[1] = 1;
  EXPECT_NEAR(sign_test_p(a, zeros), 2.0 * 56 / 1024, 1e-12);
  a[2] = 0;  // a tie: 2 against 7
  EXPECT_NEAR(sign_test_p(a, zeros), 2.0 * 46 / 512, 1e-12);
  EXPECT_DOUBLE_EQ(sign_test_p(zeros, a), sign_test_p(a, zeros));
}

TEST(SignTest, NoEvidenceIsOne) {
  const std::vector<double> zeros(4, 0.0);
  EXPECT_DOUBLE_EQ(sign_test_p(zeros, zeros), 1.0);
  EXPECT_DOUBLE_EQ(sign_test_p({}, zeros), 1.0);
  EXPECT_DOUBLE_EQ(sign_test_p(std::vector<double>{1, -1}, std::vector<double>{0, 0}), 1.0);
  EXPECT_DOUBLE_EQ(sign_test_p(std::vector<double>{kNan, kNan}, zeros), 1.0);
}

TEST(SignTest, ManyPairsWithoutADifferenceAreNotSignificant) {
  for (const std::size_t n : {400U, 501U, 1000U, 1200U, 5000U}) {
    std::vector<double> a(n);
    const std::vector<double> zeros(n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      a[i] = i % 2 == 0 ? 1 : -1;
    }
    EXPECT_GT(sign_test_p(a, zeros), 0.9) << n;
    std::fill(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n * 6 / 10), -1.0);
    EXPECT_LT(sign_test_p(a, zeros), 1e-3) << n;
  }
}

TEST(StudentTest, AgreesWithTables) {
  // Two-sided 5 % and 1 % points.
  for (const auto& [degrees, at_5, at_1] :
       {std::tuple(1, 12.7062, 63.6567), std::tuple(2, 4.30265, 9.92484), std::tuple(3, 3.18245, 5.84091),
        std::tuple(4, 2.77645, 4.60409), std::tuple(7, 2.36462, 3.49948), std::tuple(10, 2.22814, 3.16927)}) {
    EXPECT_NEAR(student_t_p(at_5, degrees), 0.05, 1e-5) << degrees;
    EXPECT_NEAR(student_t_p(-at_1, degrees), 0.01, 1e-5) << degrees;
  }
  EXPECT_EQ(student_t_p(0, 5), 1);
  EXPECT_EQ(student_t_p(std::numeric_limits<double>::infinity(), 5), 0);
  EXPECT_EQ(student_t_p(std::nan(""), 5), 1);
  EXPECT_EQ(student_t_p(100, 0), 1);
}

TEST(TrimmedMeanTest, IsThatOfTheMiddleAndKnownByTheWinsorizedVariance) {
  const TrimmedMean of_ten = trimmed_mean({50, 2, 4, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_DOUBLE_EQ(of_ten.mean, 6.625);
  EXPECT_NEAR(of_ten.error, std::sqrt(54.1 / 9) / (0.8 * std::sqrt(10.0)), 1e-12);
  EXPECT_EQ(of_ten.degrees, 7);
  const TrimmedMean of_four = trimmed_mean({1, 3, 2, 6});
  EXPECT_DOUBLE_EQ(of_four.mean, 3);
  EXPECT_NEAR(of_four.error, std::sqrt(14.0 / 3 / 4), 1e-12);
  EXPECT_EQ(of_four.degrees, 3);
  EXPECT_EQ(trimmed_mean({7}).mean, 7);
  EXPECT_EQ(trimmed_mean({7}).error, kInfinity);
  EXPECT_TRUE(std::isnan(trimmed_mean({}).mean));
  EXPECT_TRUE(std::isnan(trimmed_mean({1, kNan}).mean));
}

TEST(TrimmedMeanTest, ItsIntervalHoldsTheMeanAsOftenAsItSays) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 1);
  for (const int count : {6, 12, 24}) {
    int outside = 0;
    constexpr int kTimes = 4000;
    for (int i = 0; i < kTimes; ++i) {
      std::vector<double> values;
      for (int k = 0; k < count; ++k) {
        values.push_back(noise(random));
      }
      const TrimmedMean found = trimmed_mean(values);
      outside += student_t_p(found.mean / found.error, found.degrees) <= 0.05 ? 1 : 0;
    }
    EXPECT_NEAR(outside / static_cast<double>(kTimes), 0.05, 0.01) << count;
  }
}

TEST(MovedTest, IsTheWayFromBeginToEnd) {
  EXPECT_EQ(moved(std::vector<double>{}), 0);
  EXPECT_EQ(moved(std::vector<double>{5}), 0);
  EXPECT_NEAR(moved(std::vector<double>{0, 1, 2, 3}), 4, 1e-12);
  EXPECT_NEAR(moved(std::vector<double>{4, 3, 2, 1, 0}), 6, 1e-12)
      << "the middle one of an odd number is in neither half";
  EXPECT_NEAR(moved(std::vector<double>{60, 61, 60, 61}), 0, 1e-12) << "flickering is standing still";
}

TEST(HolmTest, SmallestIsHeldToTheStrictestLevel) {
  const std::vector<double> adjusted = holm_adjusted(std::vector<double>{0.04, 0.01, 0.03});
  ASSERT_EQ(adjusted.size(), 3U);
  EXPECT_DOUBLE_EQ(adjusted[1], 0.03);
  EXPECT_DOUBLE_EQ(adjusted[2], 0.06);
  EXPECT_DOUBLE_EQ(adjusted[0], 0.06) << "never below one that was smaller before";
}

TEST(HolmTest, NeverAboveOneAndNothingIsLost) {
  EXPECT_TRUE(holm_adjusted({}).empty());
  EXPECT_EQ(holm_adjusted(std::vector<double>{0.02}), std::vector<double>{0.02});
  EXPECT_EQ(holm_adjusted(std::vector<double>{0.6, 0.6, 1.0}), (std::vector<double>{1, 1, 1}));
  const std::vector<double> adjusted = holm_adjusted(std::vector<double>{kNan, 0.001, kNan});
  EXPECT_DOUBLE_EQ(adjusted[1], 0.003);
  EXPECT_EQ(adjusted[0], 1);
  EXPECT_EQ(adjusted[2], 1);
}

}  // namespace
}  // namespace pascaline
