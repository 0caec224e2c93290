#include "tuner/monitor/sustained.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/tuner/measure/relay_device.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

/// The toy in made-up time on a made-up card that warms up as it works: a launch takes a millisecond and a little more
/// the warmer the card is.
class SustainedTest : public ::testing::Test {
 protected:
  ToyBench bench_{toy_json()};
  RelayDevice device_;
  double now_s_ = 0;
  int alive_ = 0;
  SustainedOptions options_;
  std::function<Sensors(double)> sensors_ = [](double now_s) {
    Sensors sensors;
    sensors.temperature_c = temperature_c(now_s);
    sensors.sm_clock_mhz = 1000;
    return sensors;
  };
  std::function<double(double)> time_us_ = [](double now_s) {
    return 1000 * (1 + 0.01 * (temperature_c(now_s) - 40) / 4);
  };

  [[nodiscard]] static double temperature_c(double now_s) { return 80 - 40 * std::exp(-now_s / 3); }

  SustainedTest() {
    device_.on_launch = [this] { now_s_ += 1e-6 * time_us_(now_s_); };
    device_.time_us = [this](int) {
      const double time_us = time_us_(now_s_);
      now_s_ += 1e-6 * time_us;
      return time_us;
    };
    device_.sensors = [this] { return sensors_(now_s_); };
  }
  [[nodiscard]] SustainedWindow measure() {
    DeviceMonitorHooks hooks;
    hooks.now_s = [this] { return now_s_; };
    DeviceMonitor monitor(device_, {.passive = true}, hooks);
    TrialRunner runner(monitor, bench_.bound(), bench_.reference(), quick_measure(), 1);
    TrialRunner::Ready ready = runner.make_ready(toy_config(64), bench_.compile(toy_config(64)).result.binary);
    now_s_ = 0;
    device_.launches = device_.timed = alive_ = 0;
    return measure_sustained(monitor, ready.work(device_), 1000, options_, [this] { ++alive_; });
  }
};

TEST_F(SustainedTest, TimesTheWorkOnceItsHeatStandsStill) {
  const SustainedWindow window = measure();
  ASSERT_TRUE(window.median_us) << window.why_not;
  EXPECT_TRUE(window.steady);
  EXPECT_NEAR(*window.median_us, 1100, 4) << "a tenth slower than when cold";
  EXPECT_GT(now_s_, 10);
  EXPECT_LT(now_s_, 30);
  EXPECT_NEAR(alive_, now_s_, 3) << "whoever watches hears of it every second";
  EXPECT_GT(device_.launches, 15 * device_.timed) << "back to back, not launch by launch";
}

TEST_F(SustainedTest, WorkThatThrottlesInTheLongRunIsTimedAsItIsThen) {
  sensors_ = [](double now_s) {
    Sensors sensors;
    sensors.temperature_c = 80;
    sensors.sm_clock_mhz = now_s < 6 ? 1500 : 1000;
    sensors.throttle_reasons = now_s < 6 ? 0 : 0x40;
    return sensors;
  };
  time_us_ = [](double now_s) { return now_s < 2 ? 900 - 50 * now_s : now_s < 6 ? 800 : 1200; };
  options_.steady_s = 5;
  EXPECT_NEAR(measure().median_us.value(), 1200, 1);
}

TEST_F(SustainedTest, WithoutATemperatureTheClockAndTheLaunchesTell) {
  sensors_ = [](double now_s) {
    Sensors sensors;
    sensors.sm_clock_mhz = now_s < 8 ? 1500 - 50 * now_s : 1100;
    return sensors;
  };
  time_us_ = [](double) { return 1000.0; };
  const SustainedWindow window = measure();
  EXPECT_TRUE(window.steady);
  EXPECT_GT(now_s_, 8 + 2);
  sensors_ = [](double) { return Sensors{}; };
  time_us_ = [](double now_s) { return 1000 + 20 * std::min(now_s, 9.0); };
  EXPECT_NEAR(measure().median_us.value(), 1180, 1);
}

TEST_F(SustainedTest, WhatNeverStandsStillIsTakenAsItIsAtTheLimitAndSaysSo) {
  sensors_ = [](double now_s) {
    Sensors sensors;
    sensors.temperature_c = 40 + 2 * now_s;
    return sensors;
  };
  options_.limit_s = 7;
  const SustainedWindow window = measure();
  EXPECT_TRUE(window.median_us);
  EXPECT_FALSE(window.steady);
  EXPECT_NEAR(now_s_, 9, 0.2);
}

TEST_F(SustainedTest, TheUsersLimitEndsIt) {
  options_.max_temperature_c = 70;
  const SustainedWindow window = measure();
  EXPECT_FALSE(window.median_us);
  EXPECT_NE(window.why_not.find("--max-temperature is 70 C"), std::string::npos) << window.why_not;
  EXPECT_LT(temperature_c(now_s_), 71) << "at once";
}

TEST(TellsHeatTest, ACardTellsByItsTemperatureOrItsClock) {
  Sensors sensors;
  EXPECT_FALSE(reports_heat(sensors));
  sensors.power_w = 50;
  EXPECT_FALSE(reports_heat(sensors));
  sensors.sm_clock_mhz = 0;
  EXPECT_FALSE(reports_heat(sensors)) << "what a card reports that knows none";
  sensors.sm_clock_mhz = 1000;
  EXPECT_TRUE(reports_heat(sensors));
  sensors = {};
  sensors.temperature_c = 50;
  EXPECT_TRUE(reports_heat(sensors));
}

}  // namespace
}  // namespace pascaline::testing
