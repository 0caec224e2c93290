#include "tuner/monitor/device_monitor.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "core/error.hpp"
#include "tests/tuner/measure/relay_device.hpp"

namespace pascaline::testing {
namespace {

/// Made-up time: a canary takes 100 us of it, readings and sleeps what the case says.
class DeviceMonitorTest : public ::testing::Test {
 protected:
  RelayDevice device_;
  GovernorOptions options_;
  double now_s_ = 50;
  double read_s_ = 0;
  int reads_ = 0;
  double canary_us_ = 100;
  Sensors sensors_;
  DeviceMonitorHooks hooks_;
  std::vector<std::string> pauses_;

  DeviceMonitorTest() {
    device_.sensors = [this] {
      ++reads_;
      now_s_ += read_s_;
      return sensors_;
    };
    device_.canary_us = [this] {
      now_s_ += 0.0001;
      return canary_us_;
    };
    hooks_.now_s = [this] { return now_s_; };
    hooks_.sleep_s = [this](double seconds) { now_s_ += seconds; };
    hooks_.pause = [this](bool waits, const std::string& reason) { pauses_.push_back(waits ? reason : "over"); };
  }
};

TEST_F(DeviceMonitorTest, ReadingsAreSharedForTenMilliseconds) {
  options_.passive = true;
  DeviceMonitor monitor(device_, options_, hooks_);
  sensors_.power_w = 70;
  for (int i = 0; i < 100; ++i) {
    monitor.check();
    now_s_ += 0.001;
  }
  EXPECT_GE(reads_, 9);
  EXPECT_LE(reads_, 11);
  EXPECT_EQ(monitor.last_sensors().power_w, 70);
}

TEST_F(DeviceMonitorTest, SlowReadingsAreSharedForLonger) {
  options_.passive = true;
  read_s_ = 0.005;
  DeviceMonitor monitor(device_, options_, hooks_);
  const double begin_s = now_s_;
  while (now_s_ - begin_s < 1) {
    monitor.check();
    now_s_ += 0.001;
  }
  EXPECT_LE(reads_, 20) << "a tenth of the time";
  EXPECT_GE(reads_, 17);
}

TEST_F(DeviceMonitorTest, TheCanaryIsTheBestOfThreeOrTheFirstAsSteady) {
  options_.preheat_limit_s = 0;
  DeviceMonitor monitor(device_, options_, hooks_);
  std::vector<double> times{104, 100, 102};
  device_.canary_us = [&] {
    const double first = times.front();
    times.erase(times.begin());
    return first;
  };
  EXPECT_EQ(monitor.canary_age_s(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(monitor.canary(), 100);
  EXPECT_EQ(monitor.last_canary_us(), 100);
  times = {100.4, 1};
  EXPECT_EQ(monitor.canary(), 100.4) << "no need of more";
  times = {103, 101, 107};
  EXPECT_EQ(monitor.canary(), 101);
  now_s_ += 3;
  EXPECT_NEAR(monitor.canary_age_s(), 3, 1e-9);
}

TEST_F(DeviceMonitorTest, APassiveOneTimesNoCanaryAndIsAlwaysFit) {
  options_.passive = true;
  DeviceMonitor monitor(device_, options_, hooks_);
  EXPECT_TRUE(monitor.preheat());
  EXPECT_FALSE(monitor.canary());
  EXPECT_TRUE(monitor.wait_until_fit());
  EXPECT_EQ(monitor.check(), SampleMark::none);
  EXPECT_EQ(device_.canaries, 0);
}

TEST_F(DeviceMonitorTest, PreheatsWithWorkUntilSteady) {
  DeviceMonitor monitor(device_, options_, hooks_);
  const double begin_s = now_s_;
  EXPECT_TRUE(monitor.preheat());
  EXPECT_TRUE(monitor.may_measure());
  EXPECT_NEAR(now_s_ - begin_s, 3, 0.3);
  EXPECT_GT(device_.canaries * 0.0001, 0.9 * (now_s_ - begin_s)) << "the card is kept busy";
  EXPECT_NEAR(monitor.waited_s(), now_s_ - begin_s, 1e-9);
  const int canaries = device_.canaries;
  EXPECT_TRUE(monitor.preheat());
  EXPECT_EQ(device_.canaries, canaries) << "once is enough";
}

TEST_F(DeviceMonitorTest, PreheatingNoticesTheStop) {
  canary_us_ = 100;
  device_.canary_us = [this] {
    now_s_ += 0.0001;
    return canary_us_ += 0.01;  // never steady
  };
  hooks_.stop = [this] { return now_s_ > 55; };
  DeviceMonitor monitor(device_, options_, hooks_);
  EXPECT_FALSE(monitor.preheat());
  EXPECT_LT(now_s_, 56);
}

TEST_F(DeviceMonitorTest, WaitsForACardThatIsTooHotAndSaysSo) {
  options_.preheat_limit_s = 0;
  sensors_.temperature_limit_c = 83;
  sensors_.temperature_c = 60;
  DeviceMonitor monitor(device_, options_, hooks_);
  monitor.canary();
  sensors_.temperature_c = 81;
  now_s_ += 1;
  monitor.check();
  EXPECT_EQ(monitor.state(), GovernorState::cooling);
  const double begin_s = now_s_;
  device_.sensors = [&] {
    sensors_.temperature_c = 81 - (now_s_ - begin_s);
    return sensors_;
  };
  EXPECT_TRUE(monitor.wait_until_fit());
  EXPECT_NEAR(now_s_ - begin_s, 6, 0.5);
  EXPECT_NEAR(monitor.waited_s(), now_s_ - begin_s, 1e-9);
  ASSERT_EQ(pauses_.size(), 2U);
  EXPECT_NE(pauses_[0].find("cooling"), std::string::npos) << pauses_[0];
  EXPECT_EQ(pauses_[1], "over");
}

// The clock of a card that did nothing for a while is low; some work mends that without a pause.
TEST_F(DeviceMonitorTest, WakingUpIsNoPause) {
  options_.preheat_limit_s = 0;
  DeviceMonitor monitor(device_, options_, hooks_);
  monitor.canary();
  int since_idle = 0;
  device_.canary_us = [&] {
    now_s_ += 0.0001;
    return ++since_idle > 10 ? 100.0 : 180.0;
  };
  monitor.canary();
  EXPECT_EQ(monitor.state(), GovernorState::settling);
  EXPECT_TRUE(monitor.wait_until_fit());
  EXPECT_TRUE(pauses_.empty());
}

TEST_F(DeviceMonitorTest, GivesUpAndSaysWhy) {
  options_.preheat_limit_s = 0;
  options_.pause_limit_s = 10;
  DeviceMonitor monitor(device_, options_, hooks_);
  monitor.canary();
  sensors_.throttle_reasons = 0x20;
  now_s_ += 1;
  EXPECT_EQ(monitor.check(), SampleMark::thermal_throttle);
  EXPECT_FALSE(monitor.wait_until_fit());
  EXPECT_TRUE(monitor.gave_up());
  EXPECT_NE(monitor.reason().find("--tolerate thermal"), std::string::npos) << monitor.reason();
  EXPECT_FALSE(monitor.wait_until_fit());
}

TEST_F(DeviceMonitorTest, AScriptStandsForSensorsAndCanary) {
  options_.preheat_limit_s = 0;
  hooks_.trace = SensorTrace::parse(R"([{"at_s": 0, "temperature_c": 45}, {"at_s": 5, "canary_scale": 1.5},
                                        {"at_s": 9, "canary_scale": 1, "canary_us": 70}])",
                                    "");
  DeviceMonitor monitor(device_, options_, hooks_);
  now_s_ += 100;  // it begins with the first reading
  EXPECT_NEAR(*monitor.canary(), 100, 1e-9);
  EXPECT_EQ(monitor.last_sensors().temperature_c, 45);
  EXPECT_EQ(reads_, 0);
  now_s_ += 5;
  EXPECT_NEAR(*monitor.canary(), 150, 1e-9);
  EXPECT_TRUE(monitor.canary_drifted());
  now_s_ += 4;
  EXPECT_EQ(monitor.canary(), 70);
}

TEST_F(DeviceMonitorTest, TheCanarysFailureIsTheCallers) {
  DeviceMonitor monitor(device_, options_, hooks_);
  device_.canary_us = []() -> double { throw CudaError("the device is lost"); };
  EXPECT_THROW(monitor.canary(), CudaError);
  EXPECT_THROW(monitor.preheat(), CudaError);
}

TEST(MonitorTelemetry, TellsTwiceASecondWhateverTheMeasuringDoes) {
  RelayDevice device;
  std::atomic<int> told = 0;
  std::atomic<int> canaries = 0;
  double seconds = 0;
  DeviceMonitorHooks hooks;
  hooks.telemetry = [&](const MonitorReading& reading) {
    ++told;
    canaries += reading.canary_us ? 1 : 0;
    EXPECT_EQ(reading.sensors.temperature_c, 61);
    EXPECT_EQ(reading.state, GovernorState::measuring);
    EXPECT_EQ(reading.reason, "");
    EXPECT_GT(reading.unix_ms, 1'600'000'000'000);
  };
  {
    GovernorOptions options;
    options.preheat_limit_s = 0;
    options.passive = true;
    const DeviceMonitor monitor(device, options, hooks);
    const auto start = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // a long launch
    while (told < 3 && std::chrono::steady_clock::now() - start < std::chrono::seconds(20)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  const int at_the_end = told;
  EXPECT_GE(at_the_end, 3);
  EXPECT_LE(at_the_end, 4 * seconds + 3) << "in " << seconds << " s";
  EXPECT_EQ(canaries, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(told, at_the_end) << "it ends with the monitor";
}

TEST(MonitorTelemetry, ACanaryIsToldOnce) {
  RelayDevice device;
  std::atomic<int> told = 0;
  std::atomic<int> canaries = 0;
  DeviceMonitorHooks hooks;
  hooks.telemetry_period_s = 0.005;
  hooks.telemetry = [&](const MonitorReading& reading) {
    canaries += reading.canary_us ? 1 : 0;
    ++told;
  };
  DeviceMonitor monitor(device, {.preheat_limit_s = 0}, hooks);
  monitor.canary();
  const int before = told;
  while (told < before + 10) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(canaries, 1);
}

}  // namespace
}  // namespace pascaline::testing
