#include "tuner/measure/race.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace pascaline::testing {
namespace {

constexpr double kBestUs = 200;

Sample sample_of(double time_us) {
  Sample sample;
  sample.time_us = time_us;
  return sample;
}

std::vector<Sample> samples_of(std::initializer_list<double> times) {
  std::vector<Sample> samples;
  for (const double time_us : times) {
    samples.push_back(sample_of(time_us));
  }
  return samples;
}

/// Launches whose times scatter as those of cards do: by a share of the time, and now and then one that something
/// interrupted.
class Launches {
 public:
  explicit Launches(unsigned seed, double spread = 0.01, double interrupted = 0)
      : random_(seed), noise_(0, spread), interrupted_(interrupted) {}

  double time_us(double median_us) {
    const double time_us = median_us * std::exp(noise_(random_));
    return interrupted_(random_) ? 1.5 * time_us : time_us;
  }

  NoiseScale scale_of(int configurations) {
    NoiseScale scale;
    for (int i = 0; i < configurations; ++i) {
      std::vector<Sample> samples;
      for (int launch = 0; launch < 10; ++launch) {
        samples.push_back(sample_of(time_us(300)));
      }
      scale.add(samples);
    }
    return scale;
  }

  // Samples until it is dropped; 0 if it is not within 30.
  int dropped_after(const Race& race, double median_us) {
    std::vector<Sample> samples;
    for (int launch = 1; launch <= 30; ++launch) {
      samples.push_back(sample_of(time_us(median_us)));
      if (race.lost(samples, 1)) {
        return launch;
      }
    }
    return 0;
  }

 private:
  std::mt19937 random_;
  std::normal_distribution<double> noise_;
  std::bernoulli_distribution interrupted_;
};

double dropped_share(Launches& launches, double error, int races) {
  int dropped = 0;
  for (int i = 0; i < races; ++i) {
    dropped += launches.dropped_after({kBestUs, error, 0, launches.scale_of(1)}, kBestUs) > 0 ? 1 : 0;
  }
  return static_cast<double>(dropped) / races;
}

TEST(NoiseScaleTest, PoolsDeviations) {
  Launches launches(1, 0.02);
  const NoiseScale scale = launches.scale_of(200);
  EXPECT_NEAR(std::sqrt(scale.variance()), 0.02, 0.003);
  EXPECT_EQ(scale.degrees_of_freedom(), 200 * 9);
}

TEST(NoiseScaleTest, OneInterruptedLaunchChangesLittle) {
  NoiseScale scale;
  scale.add(samples_of({100, 101, 99, 100.5, 99.5, 5000}));
  EXPECT_LT(std::sqrt(scale.variance()), 0.02);
}

TEST(NoiseScaleTest, TooFewSamplesTellNothing) {
  NoiseScale scale;
  scale.add(samples_of({100, 150}));
  auto samples = samples_of({100, 150, 200});
  samples[1].mark = SampleMark::clock_drift;
  scale.add(samples);
  EXPECT_EQ(scale.degrees_of_freedom(), 0);
  EXPECT_EQ(scale.variance(), 0);
}

TEST(RaceTest, AsFastAsTheBestIsDroppedAsSeldomAsAllowed) {
  Launches launches(2);
  EXPECT_LE(dropped_share(launches, 0.05, 4000), 0.05);
  EXPECT_GE(dropped_share(launches, 0.05, 4000), 0.001) << "the test is not one that never drops anything";
}

TEST(RaceTest, HeavyTailsDropNoMore) {
  Launches launches(3, 0.01, 0.05);
  EXPECT_LE(dropped_share(launches, 0.05, 4000), 0.05);
}

TEST(RaceTest, SlowerOnesAreDroppedSoon) {
  Launches launches(4);
  const Race race(kBestUs, 0.01, 0.01, launches.scale_of(20));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(launches.dropped_after(race, 1.25 * kBestUs), Race::kMinSamples);
    const int close = launches.dropped_after(race, 1.08 * kBestUs);
    EXPECT_GE(close, Race::kMinSamples);
    EXPECT_LE(close, 6);
  }
}

TEST(RaceTest, WithoutKnowledgeOfNoiseItTakesLonger) {
  const Race blind(kBestUs, 0.01, 0.01, {});
  EXPECT_FALSE(blind.lost(samples_of({230, 240, 235}), 1));
  EXPECT_TRUE(blind.lost(samples_of({230, 240, 235, 232, 238, 236}), 1));
}

TEST(RaceTest, ShortLaunchesAreKnownToHalfAMicrosecond) {
  const Race race(4, 0.01, 0.01, {});
  EXPECT_FALSE(race.lost(samples_of({4.2, 4.2, 4.2}), 1)) << "equal times of a coarse clock prove nothing";
  EXPECT_TRUE(race.lost(samples_of({9, 9, 9}), 1));
}

TEST(RaceTest, SamplesCountTimesTheClockScale) {
  Launches launches(5);
  const Race race(kBestUs, 0.01, 0.01, launches.scale_of(20));
  const auto samples = samples_of({250, 251, 249});
  EXPECT_TRUE(race.lost(samples, 1));
  EXPECT_FALSE(race.lost(samples, 0.8));
}

TEST(RaceTest, NothingIsDroppedWithoutABestOrAnError) {
  const auto samples = samples_of({900, 901, 902, 900});
  EXPECT_FALSE(Race(0, 0.01, 0.01, {}).lost(samples, 1));
  EXPECT_FALSE(Race(kBestUs, 0, 0.01, {}).lost(samples, 1));
  EXPECT_TRUE(Race(kBestUs, 0.01, 0.01, {}).lost(samples, 1));
}

TEST(RaceTest, MarkedSamplesDoNotCount) {
  const Race race(kBestUs, 0.01, 0.01, {});
  auto samples = samples_of({900, 900, 900});
  samples[0].mark = SampleMark::thermal_throttle;
  EXPECT_FALSE(race.lost(samples, 1));
}

}  // namespace
}  // namespace pascaline::testing
