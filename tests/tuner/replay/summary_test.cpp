#include <gtest/gtest.h>

#include <cmath>

#include "tuner/replay/replay.hpp"

namespace pascaline::testing {
namespace {

ReplayResult result(const std::string& space, const std::string& searcher, Quartiles ratio, double score) {
  ReplayResult out;
  out.space = space;
  out.searcher = searcher;
  out.ratios[25] = ratio;
  out.score = score;
  return out;
}

TEST(SummaryTest, GeometricMeansOfQuartilesAndMeanOfScores) {
  const auto summaries = summarise({result("a", "random", {1, 2, 4}, 0.25), result("a", "local", {1, 1, 1}, 1),
                                    result("b", "random", {4, 8, 9}, -0.75), result("b", "local", {1, 1, 4}, 0)});
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_EQ(summaries[0].searcher, "random") << "in the order of the results";
  EXPECT_NEAR(summaries[0].ratios.at(25).low, 2, 1e-12);
  EXPECT_NEAR(summaries[0].ratios.at(25).median, 4, 1e-12);
  EXPECT_NEAR(summaries[0].ratios.at(25).high, 6, 1e-12);
  EXPECT_DOUBLE_EQ(summaries[0].score.value(), -0.25);
  EXPECT_NEAR(summaries[1].ratios.at(25).high, 2, 1e-12);
}

TEST(SummaryTest, WhatIsNotDoneIsLeftOut) {
  const auto summaries = summarise(
      {result("a", "random", {1, 2, 4}, 0), result("a", "local", {1, 2, 4}, 0), result("b", "random", {1, 2, 4}, 0)});
  ASSERT_EQ(summaries.size(), 1U);
  EXPECT_EQ(summaries[0].searcher, "random");
  EXPECT_TRUE(summarise({}).empty());
}

TEST(SummaryTest, NothingFoundOnOneSpaceIsNothingFound) {
  const double none = std::numeric_limits<double>::infinity();
  const auto summaries = summarise({result("a", "random", {1, 1, none}, 0), result("b", "random", {2, 2, 2}, 0)});
  EXPECT_TRUE(std::isinf(summaries.at(0).ratios.at(25).high));
  EXPECT_TRUE(std::isfinite(summaries.at(0).ratios.at(25).median));
}

TEST(QuartilesTest, Interpolate) {
  const Quartiles odd = quartiles({5, 1, 3});
  EXPECT_DOUBLE_EQ(odd.low, 2);
  EXPECT_DOUBLE_EQ(odd.median, 3);
  EXPECT_DOUBLE_EQ(odd.high, 4);
  EXPECT_DOUBLE_EQ(quartiles({1, 2, 3, 4}).median, 2.5);
  EXPECT_DOUBLE_EQ(quartiles({1, 2, 3, 4}).low, 1.75);
  EXPECT_DOUBLE_EQ(quartiles({7}).high, 7);
  const double none = std::numeric_limits<double>::infinity();
  EXPECT_EQ(quartiles({1, none, none}).median, none);
  EXPECT_EQ(quartiles({none, none, none, none}).low, none) << "not the difference of infinities";
  EXPECT_EQ(quartiles({1, 2, none}).median, 2);
}

}  // namespace
}  // namespace pascaline::testing
