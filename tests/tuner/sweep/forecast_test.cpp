#include "tuner/sweep/forecast.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tuner/sweep/stop_text.hpp"

namespace pascaline::testing {
namespace {

TEST(ForecastTest, ATimeThatSufficesGivesNone) {
  const std::vector<FirstLook> looks{{10, 5}, {20, 1}};
  EXPECT_FALSE(forecast(looks, {}, {30, 1}));
  EXPECT_FALSE(forecast(looks, {}, {15, 2})) << "two devices share the looks";
  EXPECT_FALSE(forecast({}, {3, 1}, {0, 1})) << "nothing is left to look at";
}

TEST(ForecastTest, CountsTheLooksThatFitInTheAgendasOrder) {
  const std::vector<FirstLook> looks{{10, 60}, {15, 20}, {100, 15}, {1, 5}};
  const auto found = forecast(looks, {}, {30, 1});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->reached, 2U) << "what comes after one that does not fit is not reached";
  EXPECT_EQ(found->problems, 4U);
  EXPECT_DOUBLE_EQ(found->reached_share.value(), 0.8);
  EXPECT_DOUBLE_EQ(found->needed_s, 126);
  EXPECT_EQ(forecast_text(*found),
            "30 s reaches about 2 of 4 shapes here, 80 % of the model's time; about 2 min 30 s "
            "reach all");
}

TEST(ForecastTest, ALookThatIsCutShortCountsAndTakesTheRest) {
  const std::vector<FirstLook> looks{{40, 3}, {1, 1}};
  const auto found = forecast(looks, {}, {20, 1});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->reached, 1U);
  EXPECT_DOUBLE_EQ(found->reached_share.value(), 0.75);
}

TEST(ForecastTest, WhatWasLookedAtBeforeCounts) {
  const std::vector<FirstLook> looks{{100, 1}};
  const auto found = forecast(looks, {3, 9}, {10, 1});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->reached, 3U);
  EXPECT_EQ(found->problems, 4U);
  EXPECT_DOUBLE_EQ(found->reached_share.value(), 0.9);
}

TEST(ForecastTest, WithoutCallsThereIsNoShare) {
  const std::vector<FirstLook> looks{{300, 0}, {1200, 0}};
  const auto found = forecast(looks, {}, {60, 1});
  ASSERT_TRUE(found);
  EXPECT_EQ(forecast_text(*found),
            "the time limit is too short to reach any of the 2 shapes here; about 25 min reach all");
}

TEST(StopTextTest, IsOneLineInEveryState) {
  EXPECT_EQ(stop_text({}), "stopping; press Ctrl-C again to abort");
  EXPECT_EQ(stop_text({1, 0, 0.5}), "stopping after this trial; press Ctrl-C again to abort");
  EXPECT_EQ(stop_text({1, 0, 69.2}), "stopping after this trial, at most 1 min 10 s; press Ctrl-C again to abort");
  EXPECT_EQ(stop_text({0, 1, 20}), "stopping after these finals, at most 20 s; press Ctrl-C again to abort");
  EXPECT_EQ(stop_text({2, 1, 1}), "stopping after what is being measured; press Ctrl-C again to abort");
}

}  // namespace
}  // namespace pascaline::testing
