#include "tuner/measure.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/error.hpp"
#include "core/statistics.hpp"
#include "runtime/dispatch/arguments.hpp"
#include "tests/tuner/relay_device.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

class MeasureTest : public ::testing::Test {
 protected:
  RelayDevice device_;
  MeasureOptions options_;

  // Only timed launches are asked of the device: they are made up.
  [[nodiscard]] std::vector<Sample> times(double best_us = 0) {
    options_.warm_up = 0;
    return measure(device_, Kernel(), Geometry(), {}, options_, best_us);
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

TEST_F(MeasureTest, HopelessConfigurationsGetThreeSamples) {
  device_.time_us = [](int number) { return number == 2 ? 31.0 : 50.0; };
  EXPECT_EQ(times(10).size(), 3U);
  device_.time_us = [](int number) { return number % 3 == 2 ? 29.0 : 50.0; };
  EXPECT_GT(times(10).size(), 3U) << "the fastest of three is not above three times the best";
  options_.abort_factor = 0;
  device_.time_us = [](int) { return 1000.0; };
  EXPECT_EQ(times(10).size(), 10U) << "never give up";
}

TEST_F(MeasureTest, BudgetEndsItButNotBeforeThreeSamples) {
  options_.budget_ms = 1;
  device_.time_us = [](int number) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return number % 2 == 0 ? 10.0 : 20.0;
  };
  EXPECT_EQ(times().size(), 3U);
}

TEST_F(MeasureTest, SensorsGoWithTheLastSample) {
  device_.time_us = [](int) { return 10.0; };
  const std::vector<Sample> samples = times();
  EXPECT_FALSE(samples.front().temperature_c);
  EXPECT_EQ(samples.back().temperature_c, 61);
  EXPECT_FALSE(samples.back().sm_clock_mhz);
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
  const Geometry geometry = bench.bound().geometry(bench.space().launch, toy_config(64));
  const std::vector<Sample> samples = measure(device, kernel, geometry, arguments.pointers(), options, 0);
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
