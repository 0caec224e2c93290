#include "tuner/sweep/deepening.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

Trial timed(std::int64_t block, double median_us, double half_us) {
  Trial trial;
  trial.config = toy_config(block);
  trial.time = TimeSummary{median_us, median_us - half_us, median_us + half_us, 30};
  return trial;
}

TEST(DeepeningText, WhatIsExpectedIsAPlainNumber) {
  EXPECT_EQ(expected_text(0.0123), "1.2 % faster expected");
  EXPECT_EQ(expected_text(0.994), "99 % faster expected");
  EXPECT_EQ(expected_text(0.996), "2.0 times as fast expected");
  EXPECT_EQ(expected_text(6.4), "7.4 times as fast expected");
  EXPECT_EQ(expected_text(1234.5), "1235.5 times as fast expected");
}

TEST(OpenFinalsTest, OneThatIsAsFastAsFarAsIsKnownMayBeFaster) {
  const OpenFinals open = open_finals({timed(32, 100, 1.96), timed(64, 100, 1.96)}, 0);
  // Of the difference of two medians, each known to a standard error of 1 us, the expected part below zero.
  EXPECT_NEAR(open.share, std::sqrt(2.0) / std::sqrt(2 * std::numbers::pi) / 100, 1e-9);
  EXPECT_EQ(open.close, 1U);
  EXPECT_EQ(open.among, (std::vector<std::string>{toy_config(32).text(), toy_config(64).text()}));
}

TEST(OpenFinalsTest, NothingIsOpenWhereAllOthersAreClearlySlower) {
  const OpenFinals open = open_finals({timed(32, 120, 1), timed(64, 100, 1), timed(128, 110, 1)}, 1);
  EXPECT_EQ(open.close, 0U);
  EXPECT_LT(open.share, 1e-9);
  EXPECT_EQ(open.among, std::vector<std::string>{toy_config(64).text()});
}

TEST(OpenFinalsTest, ABaselineThatStayedAlthoughAnotherLookedFasterIsOpen) {
  const OpenFinals open = open_finals({timed(64, 100, 5), timed(32, 97, 5)}, 0);
  EXPECT_GT(open.share, 0.03) << "the difference itself, at least";
  EXPECT_EQ(open.close, 1U);
  EXPECT_GT(open.share, open_finals({timed(64, 100, 5), timed(32, 99, 5)}, 0).share);
}

TEST(OpenFinalsTest, BetterKnownMediansLeaveLessOpen) {
  const double few = open_finals({timed(32, 100, 2), timed(64, 100.2, 2)}, 0).share;
  const double many = open_finals({timed(32, 100, 1), timed(64, 100.2, 1)}, 0).share;
  EXPECT_LT(many, few);
  EXPECT_GT(many, 0);
}

TEST(OpenFinalsTest, WithoutAWinnerOrItsTimeNothingIsKnown) {
  EXPECT_EQ(open_finals({}, 0).close, 0U);
  EXPECT_EQ(open_finals({Trial{}}, 0).share, 0);
}

TEST(DeepeningTest, RoundsGrowFourfoldThreeTimes) {
  EXPECT_EQ(rounds_factor(0), 1);
  EXPECT_EQ(rounds_factor(1), 4);
  EXPECT_EQ(rounds_factor(kMaxFinalsAgain), 64);
  EXPECT_EQ(rounds_factor(kMaxFinalsAgain + 5), 64);
}

TEST(DeepeningTest, NeighboursThatBroughtNothingAreExpectedToBringLess) {
  EXPECT_DOUBLE_EQ(expected_of_neighbour({}), 0.01 / 32);
  EXPECT_LT(expected_of_neighbour({70, 0}), 0.0001) << "the usual --min-gain";
  EXPECT_GT(expected_of_neighbour({67, 0}), 0.0001);
  EXPECT_GT(expected_of_neighbour({32, 0.05}), expected_of_neighbour({}));
}

TEST(DeepeningTest, AShapeGainsByDistanceAndByWhatItsNeighboursWinnersLoseOnEachOther) {
  EXPECT_DOUBLE_EQ(expected_of_shape(1, std::nullopt, 0), 0.05);
  EXPECT_DOUBLE_EQ(expected_of_shape(0.5, std::nullopt, 0), 0.025);
  EXPECT_DOUBLE_EQ(expected_of_shape(1, 0.3, 2), 0.15);
  EXPECT_DOUBLE_EQ(expected_of_shape(1, 0.0, 2), 0.002) << "with one winner for both little, but not nothing";
  EXPECT_DOUBLE_EQ(expected_of_shape(1, -0.1, 2), 0.002);
}

}  // namespace
}  // namespace pascaline::testing
