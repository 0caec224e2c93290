#include "tuner/portfolio/estimated_times.hpp"

#include <gtest/gtest.h>

#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

/// Four configurations of the toy kernel: the default, the one beside it, the one farthest from it, a slow one.
class SpreadOutTest : public ::testing::Test {
 protected:
  Space space_ = Space::parse(toy_json({kRight, kNotANumber}).dump(), "toy.json");
  EstimatedTimes estimated_;

  SpreadOutTest() {
    estimated_.configs = {toy_config(64), toy_config(128), toy_config(128, kNotANumber), toy_config(32, kNotANumber)};
    estimated_.times.configs = 4;
    estimated_.times.rows = {{{10, 11, 10.5, 20}, 10, 0}, {{10, 10, 10, 20}, 10, 0}};
  }
};

TEST_F(SpreadOutTest, TakesTheFarthestOfThoseThatAreNearTheBest) {
  PortfolioChoice choice = choose_portfolio(estimated_.times, {0}, 3);
  ASSERT_EQ(choice.members, std::vector<std::size_t>{0}) << "nothing is better than the default";
  spread_out(space_, estimated_, 1, 1.15, choice);
  EXPECT_EQ(choice.members, (std::vector<std::size_t>{0, 2}));
  spread_out(space_, estimated_, 3, 1.15, choice);
  EXPECT_EQ(choice.members, (std::vector<std::size_t>{0, 2, 1})) << "the slow one stays out";
  EXPECT_EQ(choice.quality.size(), choice.members.size());
  spread_out(space_, estimated_, 3, 3, choice);
  EXPECT_EQ(choice.members.back(), 3U);
}

TEST_F(SpreadOutTest, WhatIsNotKnownForEveryProblemIsNotTaken) {
  estimated_.times.rows[1].time_us[2] = kUnknownTime;
  PortfolioChoice choice = choose_portfolio(estimated_.times, {0}, 3);
  spread_out(space_, estimated_, 3, 1.15, choice);
  EXPECT_EQ(choice.members, (std::vector<std::size_t>{0, 1}));
}

}  // namespace
}  // namespace pascaline::testing
