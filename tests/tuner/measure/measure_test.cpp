#include "tuner/measure/measure.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/error.hpp"
#include "core/util/statistics.hpp"
#include "runtime/dispatch/arguments.hpp"
#include "tests/tuner/measure/relay_device.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

class MeasureTest : public ::testing::Test {
 protected:
  RelayDevice device_;
  DeviceMonitor monitor_{device_, {.passive = true}};
  MeasureOptions options_;

  // Only timed launches are asked of the device: they are made up.
  [[nodiscard]] std::vector<Sample> times(double best_us = 0) {
    options_.warm_up = 0;
    return measure(monitor_, Kernel(), Geometry(), {}, options_, best_us).samples;
  }
};

TEST_F(MeasureTest, StopsAtTheFewestSamplesIfTheyAgree) {
  device_.time_us = [](int) { return 10.0; };
  EXPECT_EQ(times().size(), 10U);
}

TEST_F(MeasureTest, GoesOnUntilTheMedianIsKnownWellEnough) {
  options_.max_samples = 10'000;
  device_.time_us = [](int number) { return 10.0 + (number * 7919 % 100) / 50.0; };
  const std::vector<Sample> samples = times();
  EXPECT_GT(samples.size(), 10U);
  EXPECT_LT(samples.size(), 10'000U);
  EXPECT_LE(relative_half_width(summarize(samples)), options_.target_half_width);
}

TEST_F(MeasureTest, NoisyTimesEndAtTheMostSamples) {
  device_.time_us = [](int number) { return number % 2 == 0 ? 10.0 : 20.0; };
  EXPECT_EQ(times().size(), 200U);
}

TEST_F(MeasureTest, SlowerConfigurationsAreDropped) {
  options_.warm_up = 0;
  device_.time_us = [](int) { return 50.0; };
  const Measured slower = measure(monitor_, Kernel(), Geometry(), {}, options_, 10);
  EXPECT_EQ(slower.samples.size(), 3U);
  EXPECT_TRUE(slower.dropped);
  const Measured as_fast = measure(monitor_, Kernel(), Geometry(), {}, options_, 50);
  EXPECT_EQ(as_fast.samples.size(), 10U);
  EXPECT_FALSE(as_fast.dropped);
  options_.race_error = 0;
  EXPECT_EQ(times(10).size(), 10U) << "none is dropped";
}

TEST_F(MeasureTest, TellsWhereItsTimeWent) {
  options_.warm_up = 0;  // what remains of warming up is waiting for the device
  device_.evict_time_us = 2000;
  device_.time_us = [](int) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return 50.0;
  };
  device_.on_synchronize = [] { std::this_thread::sleep_for(std::chrono::milliseconds(4)); };
  const Measured measured = measure(monitor_, Kernel(), Geometry(), {}, options_, 0);
  ASSERT_EQ(measured.samples.size(), 10U);
  EXPECT_GE(measured.warm_up_ms, 4);
  EXPECT_EQ(measured.evict_ms, 20);
  EXPECT_GE(measured.sample_ms, 30);
  EXPECT_LT(measured.sample_ms, 500);
  EXPECT_EQ(measured.wait_ms, 0);
}

TEST_F(MeasureTest, BudgetEndsItButNotBeforeThreeSamples) {
  options_.budget_ms = 1;
  device_.time_us = [](int number) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return number % 2 == 0 ? 10.0 : 20.0;
  };
  EXPECT_EQ(times().size(), 3U);
}

TEST_F(MeasureTest, SensorsGoWithTheSamples) {
  device_.time_us = [](int) { return 10.0; };
  const std::vector<Sample> samples = times();
  EXPECT_EQ(samples.front().temperature_c, 61);
  EXPECT_EQ(samples.back().temperature_c, 61);
  EXPECT_FALSE(samples.back().sm_clock_mhz);
  EXPECT_EQ(device_.canaries, 0) << "a passive governor needs none";
}

/// A card in made-up time: each launch takes `launch_s_`, and `card_` says what the card is like then.
class GovernedMeasureTest : public ::testing::Test {
 protected:
  struct Card {
    std::optional<double> temperature_c = std::nullopt;
    std::optional<double> sm_clock_mhz = 1500;
    std::uint64_t bits = 0;
    double canary_us = 100;
  };
  RelayDevice device_;
  MeasureOptions options_;
  GovernorOptions governor_;
  double now_s_ = 0;
  double launch_s_ = 0.001;
  int reads_ = 0;
  std::function<Card(double)> card_ = [](double) { return Card(); };
  std::function<bool()> stop_;
  int pauses_ = 0;

  GovernedMeasureTest() {
    options_.warm_up = 0;
    governor_.preheat_limit_s = 0;
    device_.time_us = [this](int number) {
      now_s_ += launch_s_;
      return number % 2 == 0 ? 10.0 : 20.0;  // never narrow
    };
    device_.canary_us = [this] {
      now_s_ += 0.0001;
      return card_(now_s_).canary_us;
    };
    device_.sensors = [this] {
      ++reads_;
      const Card card = card_(now_s_);
      Sensors sensors;
      sensors.temperature_c = card.temperature_c;
      sensors.temperature_limit_c = 83;
      sensors.sm_clock_mhz = card.sm_clock_mhz;
      sensors.throttle_reasons = card.bits;
      return sensors;
    };
  }

  [[nodiscard]] Measured measured() {
    DeviceMonitorHooks hooks;
    hooks.now_s = [this] { return now_s_; };
    hooks.sleep_s = [this](double seconds) { now_s_ += seconds; };
    hooks.pause = [this](bool waits, const std::string&) { pauses_ += waits ? 1 : 0; };
    hooks.stop = stop_;
    DeviceMonitor monitor(device_, governor_, hooks);
    return measure(monitor, Kernel(), Geometry(), {}, options_, 0);
  }
  [[nodiscard]] static int count(const Measured& measured, SampleMark mark) {
    return static_cast<int>(std::count_if(measured.samples.begin(), measured.samples.end(),
                                          [&](const Sample& sample) { return sample.mark == mark; }));
  }
};

TEST_F(GovernedMeasureTest, ASteadyCardCostsACanaryATenthOfASecondAndFewReadings) {
  options_.max_samples = 1000;
  options_.budget_ms = 1e6;
  launch_s_ = 0.0001;
  const Measured result = measured();
  EXPECT_EQ(result.samples.size(), 1000U);
  EXPECT_EQ(count(result, SampleMark::none), 1000);
  EXPECT_EQ(result.canary_us, 100);
  EXPECT_EQ(result.clock_scale, 1);
  EXPECT_EQ(pauses_, 0);
  // 0.1 s of samples: three canaries for the first reference, one or two for what lies behind it.
  EXPECT_LE(device_.canaries, 5);
  EXPECT_LE(reads_, 12);
}

TEST_F(GovernedMeasureTest, ThrottledSamplesAreKeptButDoNotCount) {
  card_ = [](double now_s) { return Card{.bits = now_s > 0.0305 && now_s < 3 ? 0x20U : 0U}; };
  const Measured result = measured();
  EXPECT_FALSE(result.gave_up);
  EXPECT_GT(count(result, SampleMark::thermal_throttle), 0);
  EXPECT_EQ(count(result, SampleMark::none), options_.max_samples);
  EXPECT_GE(now_s_, 3) << "it waited";
  EXPECT_EQ(pauses_, 1);
}

TEST_F(GovernedMeasureTest, WaitingIsNotChargedToTheBudget) {
  options_.budget_ms = 100;
  options_.max_samples = 10'000;
  card_ = [](double now_s) { return Card{.bits = now_s > 0.02 && now_s < 8 ? 0x4U : 0U}; };
  const Measured result = measured();
  EXPECT_GE(now_s_, 8) << "a cap that has lasted for less than 10 s is waited for";
  EXPECT_GT(count(result, SampleMark::power_throttle), 0);
  EXPECT_GT(count(result, SampleMark::none), 70) << "of about 100 that fit the budget";
  EXPECT_LE(result.samples.size(), 110U);
}

// The sensors see nothing; only the canary tells.
TEST_F(GovernedMeasureTest, TheStretchBeforeABadCanaryDoesNotCount) {
  options_.budget_ms = 300;
  options_.max_samples = 10'000;
  card_ = [](double now_s) { return Card{.canary_us = now_s > 0.15 && now_s < 1 ? 120.0 : 100.0}; };
  const Measured result = measured();
  EXPECT_FALSE(result.gave_up);
  EXPECT_EQ(result.canary_us, 100) << "canaries that were off tell nothing of the samples that count";
  const int drifted = count(result, SampleMark::canary_drift);
  EXPECT_GE(drifted, 90);
  EXPECT_LE(drifted, 110);
  EXPECT_FALSE(result.samples[150].counted());
  EXPECT_TRUE(result.samples[50].counted());
}

TEST_F(GovernedMeasureTest, ABadCanaryAtTheEndMakesItGoOn) {
  options_.max_samples = 20;
  card_ = [](double now_s) { return Card{.canary_us = now_s > 0.015 && now_s < 1 ? 120.0 : 100.0}; };
  const Measured result = measured();
  EXPECT_EQ(result.samples.size(), 40U);
  EXPECT_EQ(count(result, SampleMark::canary_drift), 20);
  EXPECT_EQ(count(result, SampleMark::none), 20);
}

TEST_F(GovernedMeasureTest, ASmallDriftScales) {
  options_.max_samples = 400;
  card_ = [](double now_s) { return Card{.canary_us = now_s > 0.05 ? 101.5 : 100.0}; };
  const Measured result = measured();
  EXPECT_EQ(count(result, SampleMark::none), 400);
  EXPECT_EQ(result.canary_us, 101.5);
  EXPECT_DOUBLE_EQ(result.clock_scale, 100 / 101.5);
  EXPECT_DOUBLE_EQ(summarize(result.samples, result.clock_scale).median_us, 15 * 100 / 101.5);
  EXPECT_EQ(result.samples.back().time_us, 10);
}

TEST_F(GovernedMeasureTest, GivesUpWhenTheCardStaysUnfit) {
  governor_.pause_limit_s = 30;
  card_ = [](double now_s) { return Card{.temperature_c = now_s > 0.02 ? 82.0 : 60.0}; };
  EXPECT_TRUE(measured().gave_up);
  EXPECT_GT(now_s_, 30);
  EXPECT_LT(now_s_, 32);
}

TEST_F(GovernedMeasureTest, TheStopHookEndsAWait) {
  card_ = [](double now_s) { return Card{.bits = now_s > 0.02 ? 0x8U : 0U}; };
  stop_ = [this] { return now_s_ > 2; };
  EXPECT_TRUE(measured().gave_up);
  EXPECT_LT(now_s_, 3);
}

TEST_F(GovernedMeasureTest, AKernelThatAlwaysThrottlesTheCardIsUnfitForIt) {
  bool busy = false;
  device_.time_us = [&](int) {
    busy = true;
    now_s_ += 0.02;
    return 10.0;
  };
  device_.canary_us = [&] {
    busy = false;
    now_s_ += 0.0001;
    return 100.0;
  };
  card_ = [&](double) { return Card{.bits = busy ? 0x4U : 0U}; };
  const Measured result = measured();
  EXPECT_FALSE(result.gave_up);
  EXPECT_NE(result.unfit.find("power_throttle"), std::string::npos) << result.unfit;
  EXPECT_LT(result.samples.size(), 30U);
  governor_.tolerated_throttle = 0x4;
  EXPECT_EQ(measured().unfit, "");
}

// Always off by the time the stretch is over, always fine right after: nothing can be measured, but it ends.
TEST_F(GovernedMeasureTest, ADriftThatFollowsEverySampleEnds) {
  int bad = 0;
  device_.time_us = [&](int) {
    bad = 3;
    now_s_ += 0.2;
    return 10.0;
  };
  device_.canary_us = [&] {
    now_s_ += 0.001;
    return bad-- > 0 ? 150.0 : 100.0;
  };
  const Measured result = measured();
  EXPECT_TRUE(result.gave_up);
  EXPECT_LE(result.samples.size(), 25U);
}

TEST(Measure, TimesARealKernelAfterWarmingUp) {
  const ToyBench bench(toy_json());
  RelayDevice device;
  const Kernel kernel = device.load(bench.compile(toy_config(64)).result.binary);
  std::vector<Buffer> buffers;
  std::vector<NamedPointer> named;
  for (const char* name : {"x", "y", "out"}) {
    buffers.push_back(device.allocate(4000));
    named.push_back({name, buffers.back().data()});
  }
  const LaunchArguments arguments(device, bench.bound(), toy_config(64), named);
  MeasureOptions options = quick_measure();
  options.warm_up = 4;
  const Geometry geometry = bench.bound().geometry(bench.space().launches.front(), toy_config(64));
  DeviceMonitor monitor(device, {.passive = true});
  const std::vector<Sample> samples = measure(monitor, kernel, geometry, arguments.pointers(), options, 0).samples;
  EXPECT_EQ(device.launches, 4);
  EXPECT_GE(samples.size(), 3U);
  EXPECT_LE(samples.size(), 5U);
  for (const Sample& sample : samples) {
    EXPECT_GT(sample.time_us, 0);
    EXPECT_TRUE(sample.counted());
  }
}

}  // namespace
}  // namespace pascaline::testing
