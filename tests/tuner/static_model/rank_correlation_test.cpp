#include "tuner/static_model/rank_correlation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace pascaline {
namespace {

using Values = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(RankCorrelationTest, RanksShareTies) {
  EXPECT_EQ(ranks_of(Values{30, 10, 20, 10}), (Values{4, 1.5, 3, 1.5}));
  EXPECT_EQ(ranks_of(Values{kInfinity, 1}), (Values{2, 1}));
  EXPECT_TRUE(ranks_of(Values{}).empty());
}

TEST(RankCorrelationTest, OnlyTheOrderCounts) {
  EXPECT_DOUBLE_EQ(rank_correlation(Values{1, 2, 3, 4}, Values{1, 10, 100, kInfinity}), 1);
  EXPECT_DOUBLE_EQ(rank_correlation(Values{1, 2, 3, 4}, Values{4, 3, 2, 1}), -1);
  // 1 - 6 · (0 + 1 + 1 + 0) / (4 · 15)
  EXPECT_DOUBLE_EQ(rank_correlation(Values{1, 2, 3, 4}, Values{1, 3, 2, 4}), 0.8);
  // Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
  EXPECT_NEAR(rank_correlation(Values{1, 2, 2, 3}, Values{1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5), 1e-12);
}

TEST(RankCorrelationTest, WhatHasNoOrderHasNoCorrelation) {
  EXPECT_EQ(rank_correlation(Values{}, Values{}), 0);
  EXPECT_EQ(rank_correlation(Values{1}, Values{2}), 0);
  EXPECT_EQ(rank_correlation(Values{5, 5, 5}, Values{1, 2, 3}), 0);
}

TEST(RankCorrelationTest, RefusesWhatCannotBeRanked) {
  EXPECT_THROW((void)rank_correlation(Values{1, 2}, Values{1}), Error);
  EXPECT_THROW((void)rank_correlation(Values{1, std::nan("")}, Values{1, 2}), Error);
  EXPECT_THROW((void)share_found(Values{1, 2}, Values{1, std::nan("")}, 0.1, 0.1), Error);
}

TEST(ShareFoundTest, CountsTheBestAmongTheLikeliest) {
  const Values actual{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const Values predicted{2, 1, 9, 3, 8, 4, 5, 6, 7, 10};
  EXPECT_EQ(share_found(actual, predicted, 0.1, 0.1), 0);  // the best one is second
  EXPECT_EQ(share_found(actual, predicted, 0.1, 0.2), 1);
  EXPECT_DOUBLE_EQ(share_found(actual, predicted, 0.3, 0.3), 2.0 / 3);
  EXPECT_EQ(share_found(actual, predicted, 0.0001, 1), 1);  // one at least is sought
  EXPECT_EQ(share_found(Values{}, Values{}, 0.1, 0.1), 0);
}

}  // namespace
}  // namespace pascaline
