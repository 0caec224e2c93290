#include "runtime/thermal/thermal_watcher.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/db/fixtures.hpp"
#include "tests/runtime/dispatch/fake_device.hpp"
#include "tests/runtime/machine/small_file.hpp"

namespace pascaline::testing {
namespace {

// Waits ten seconds at most.
template <typename Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// A clock on which half a second passes from one reading to the next, however long that takes.
std::function<double()> half_seconds() {
  return [readings = 0]() mutable { return 100 + 0.5 * readings++; };
}

TEST(ThermalWatcher, GoesThroughTheStatesOfAScript) {
  FakeDevice device;
  std::atomic<std::uint8_t> cell{7};
  ThermalSources sources;
  sources.trace = SensorTrace::parse(R"([
    {"at_s": 0, "temperature_c": 60, "temperature_limit_c": 83, "throttle_reasons": 0},
    {"at_s": 10, "temperature_c": 80}, {"at_s": 20, "throttle_reasons": 32}, {"at_s": 40, "throttle_reasons": 0},
    {"at_s": 60, "temperature_c": 60}, {"at_s": 100, "temperature_c": 82}])",
                                     "script");
  sources.period_s = 1e-4;
  sources.now_s = half_seconds();
  std::vector<std::uint8_t> states;
  {
    ThermalWatcher watcher(device, {}, std::move(sources), cell);
    ASSERT_TRUE(watcher.watches());
    EXPECT_TRUE(comes_true([&] {
      const std::uint8_t state = cell.load(std::memory_order_relaxed);
      if (states.empty() || states.back() != state) {
        states.push_back(state);
      }
      return watcher.snapshot().switches >= 5;
    }));
    const ThermalSnapshot snapshot = watcher.snapshot();
    EXPECT_EQ(snapshot.state, ThermalState::hot);
    EXPECT_EQ(snapshot.switches, 5U) << "hot, throttled, hot, cool, hot";
    EXPECT_EQ(snapshot.reason, "the card is at 82 C, its limit is 83 C");
    EXPECT_GE(snapshot.readings, 200U);
    std::vector<ThermalState> told;
    for (const ThermalEvent& event : watcher.take_events()) {
      told.push_back(event.entered.value_or(ThermalState::cool));
    }
    using enum ThermalState;
    EXPECT_EQ(told, (std::vector{hot, throttled, hot, cool, hot}));
    EXPECT_TRUE(watcher.take_events().empty()) << "each is told once";
  }
  EXPECT_EQ(cell, 0) << "nobody watches any more";
}

// A device whose sensors count how often they were asked.
class AskedDevice : public FakeDevice {
 public:
  std::atomic<int> asked{0};
  [[nodiscard]] Sensors read_sensors() noexcept override {
    ++asked;
    Sensors sensors;
    sensors.temperature_c = 82;
    sensors.temperature_limit_c = 83;
    return sensors;
  }
};

TEST(ThermalWatcher, ReadsTheDeviceAndTheProcessorOfALaptop) {
  const TemporaryFolder root;
  put_file(root / "sys/class/hwmon/hwmon0/name", "coretemp");
  put_file(root / "sys/class/hwmon/hwmon0/temp1_label", "Package id 0");
  put_file(root / "sys/class/hwmon/hwmon0/temp1_input", "55000");
  put_file(root / "sys/class/hwmon/hwmon0/temp1_crit", "100000");
  AskedDevice device;
  std::atomic<std::uint8_t> cell{0};
  for (const bool is_laptop : {false, true}) {
    if (is_laptop) {
      put_file(root / "sys/class/dmi/id/chassis_type", "10");
    }
    ThermalSources sources;
    sources.root = root.path();
    sources.period_s = 1e-3;
    const ThermalWatcher watcher(device, {}, sources, cell);
    EXPECT_TRUE(comes_true([&] { return watcher.snapshot().readings > 0; }));
    EXPECT_EQ(watcher.snapshot().reading.card.temperature_c, 82);
    EXPECT_EQ(watcher.snapshot().reading.processor_c, is_laptop ? std::optional(55.0) : std::nullopt);
  }
  EXPECT_GE(device.asked, 2);
}

TEST(ThermalWatcher, EndsAtOnceWhateverItsPeriod) {
  AskedDevice device;
  std::atomic<std::uint8_t> cell{0};
  const auto begin = std::chrono::steady_clock::now();
  {
    ThermalSources sources;
    sources.period_s = 3600;
    const ThermalWatcher watcher(device, {}, sources, cell);
    EXPECT_TRUE(comes_true([&] { return device.asked > 0; }));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  for (int i = 0; i < 200; ++i) {
    const ThermalWatcher watcher(device, {}, {}, cell);  // destroyed before, while and after the thread begins
  }
}

TEST(ThermalWatcher, WhatGoesWrongWhileReadingDoesNotReachTheProgram) {
  FakeDevice device;
  std::atomic<std::uint8_t> cell{0};
  ThermalSources sources;
  sources.period_s = 1e-4;
  std::atomic<int> asked{0};
  sources.now_s = [&asked]() -> double {
    ++asked;
    throw std::runtime_error("no clock");
  };
  const ThermalWatcher watcher(device, {}, std::move(sources), cell);
  EXPECT_TRUE(comes_true([&] { return asked > 10; }));
  EXPECT_EQ(watcher.snapshot().readings, 0U);
  EXPECT_EQ(cell, 0);
}

}  // namespace
}  // namespace pascaline::testing
