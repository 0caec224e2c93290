#include "tuner/replay/recorded_race.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/tuner/replay/recorded.hpp"

namespace pascaline::testing {
namespace {

RecordedRace in_order(std::size_t trials) {
  RecordedRace race;
  race.searcher = "exhaustive";
  race.trials = trials;
  return race;
}

TEST(RecordedRaceTest, EveryRuleCountsWhatItTakes) {
  // Equal launches: a median is known after the fewest samples, a configuration twice as slow is dropped after three.
  RecordedSpace recorded = recorded_times({2000, 4000, 0, 1000});
  record_launches(recorded, 20, 0);
  const RecordedDomain space(recorded);
  ASSERT_TRUE(space.best_median_us());
  EXPECT_DOUBLE_EQ(*space.best_median_us(), 1000) << "of what was recorded, once";
  const RecordedRace race = in_order(4);
  const double warm_up_ms = 2 * (2 + 4 + 1);
  EXPECT_NEAR(sampling_ms_to_1_percent(space, race, SampleRule::all), warm_up_ms + 20 * (2 + 4 + 1), 1e-9);
  // Ten of each, and then what is left of all three in the finals.
  EXPECT_NEAR(sampling_ms_to_1_percent(space, race, SampleRule::precision), warm_up_ms + 20 * (2 + 4 + 1), 1e-9);
  // The dropped one is no finalist.
  EXPECT_NEAR(sampling_ms_to_1_percent(space, race, SampleRule::race), warm_up_ms + 20 * (2 + 1) + 3 * 4, 1e-9);
}

TEST(RecordedRaceTest, FinalsAreOfTheFastest) {
  RecordedSpace recorded = recorded_times({2000, 3000, 1000});
  record_launches(recorded, 20, 0);
  const RecordedDomain space(recorded);
  RecordedRace race = in_order(3);
  race.finalists = 1;
  EXPECT_NEAR(sampling_ms_to_1_percent(space, race, SampleRule::precision), 2 * 6 + 10 * (2 + 3) + 20, 1e-9);
}

TEST(RecordedRaceTest, WhatIsNotFoundTakesForEver) {
  RecordedSpace recorded = recorded_times({3000, 2000, 1000});
  record_launches(recorded, 8, 0.001);
  const RecordedDomain space(recorded);
  EXPECT_TRUE(std::isinf(sampling_ms_to_1_percent(space, in_order(2), SampleRule::race)));
  EXPECT_TRUE(std::isfinite(sampling_ms_to_1_percent(space, in_order(3), SampleRule::race)));
}

TEST(RecordedRaceTest, SearchesOfNoisyLaunchesTakeLess) {
  RecordedSpace recorded = recorded_bowl("bowl", 10);
  record_launches(recorded, 40, 0.02);
  const RecordedDomain space(recorded);
  double all_ms = 0;
  double race_ms = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    RecordedRace race = in_order(512);
    race.searcher = "genetic";
    race.seed = seed;
    all_ms += sampling_ms_to_1_percent(space, race, SampleRule::all);
    race_ms += sampling_ms_to_1_percent(space, race, SampleRule::race);
    EXPECT_EQ(sampling_ms_to_1_percent(space, race, SampleRule::race),
              sampling_ms_to_1_percent(space, race, SampleRule::race))
        << "the same seed";
  }
  EXPECT_TRUE(std::isfinite(all_ms));
  EXPECT_LT(race_ms, all_ms / 2);
}

TEST(RecordedRaceTest, ThereMustBeLaunchesOfEach) {
  RecordedSpace recorded = recorded_times({3, 0, 1});
  EXPECT_FALSE(RecordedDomain(recorded).best_median_us());
  record_launches(recorded, 3, 0);
  EXPECT_FALSE(RecordedDomain(recorded).best_median_us());
  RecordedSpace enough = recorded_times({3, 0, 1});
  record_launches(enough, 4, 0);
  EXPECT_TRUE(RecordedDomain(enough).best_median_us());
}

}  // namespace
}  // namespace pascaline::testing
