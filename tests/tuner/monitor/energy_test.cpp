#include "tuner/monitor/energy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/tuner/measure/relay_device.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

/// The toy, a launch a millisecond long in made-up time.
class EnergyTest : public ::testing::Test {
 protected:
  ToyBench bench_{toy_json()};
  RelayDevice device_;
  double now_s_ = 0;
  int reads_ = 0;
  std::function<std::optional<double>(double)> power_w_;

  // The last digits of a real reading are never still.
  static double flicker(double power_w, double now_s) { return power_w * (1 + 1e-6 * std::sin(1000 * now_s)); }

  EnergyTest() {
    device_.on_launch = [this] { now_s_ += 0.001; };
    device_.sensors = [this] {
      ++reads_;
      Sensors sensors;
      sensors.power_w = power_w_(now_s_);
      return sensors;
    };
  }
  [[nodiscard]] EnergyWindow window() {
    DeviceMonitorHooks hooks;
    hooks.now_s = [this] { return now_s_; };
    DeviceMonitor monitor(device_, {.passive = true}, hooks);
    TrialRunner runner(monitor, bench_.bound(), bench_.reference(), quick_measure(), 1);
    TrialRunner::Ready ready = runner.make_ready(toy_config(64), bench_.compile(toy_config(64)).result.binary);
    now_s_ = 0;
    reads_ = 0;
    device_.launches = 0;
    return measure_energy_window(monitor, ready.work(device_), 1000, 500);
  }
  [[nodiscard]] std::optional<double> energy_mj() {
    const EnergyWindow measured = window();
    return measured.changed ? measured.energy_mj : std::nullopt;
  }
};

TEST_F(EnergyTest, IntegratesPowerThatChanges) {
  // Steady for the half second that it has to be, then not.
  power_w_ = [](double now_s) { return now_s < 0.53 ? flicker(10, now_s) : 10 + 100 * (now_s - 0.53); };
  // From 0.52 s to 1.02 s: 34 W on average, a millisecond a launch.
  EXPECT_NEAR(energy_mj().value(), 35, 1.1);
  EXPECT_NEAR(reads_, 53, 2) << "every 20 ms";
  EXPECT_NEAR(device_.launches, 1040, 21);
}

TEST_F(EnergyTest, WhatRanBeforeIsNotCounted) {
  // What a card that tells the mean of the last second reads when a kernel begins that takes another power.
  for (const auto& [before_w, after_w] : {std::pair(100.0, 500.0), {500.0, 100.0}, {100.0, 123.0}, {450.0, 534.0}}) {
    power_w_ = [before = before_w, after = after_w](double now_s) {
      return flicker(before + (after - before) * std::min(now_s, 1.0), now_s);
    };
    EXPECT_NEAR(energy_mj().value(), after_w, 0.02 * after_w) << before_w;
    EXPECT_LT(now_s_, 2.2);
  }
}

TEST_F(EnergyTest, AReadingThatIsRenewedSeldomIsNotTakenForASteadyOne) {
  for (const double every_s : {0.1, 0.24, 0.49, 0.6, 0.9}) {
    power_w_ = [every_s](double now_s) { return now_s < every_s ? 100 : 500 + std::floor(now_s / every_s) / 1000; };
    EXPECT_NEAR(energy_mj().value(), 500, 5) << every_s;
  }
}

TEST_F(EnergyTest, APowerThatNoCardTakesIsNone) {
  for (const double lie_w : {-5.0, 0.0, 3001.0, 1e6, std::numeric_limits<double>::infinity(), std::nan("")}) {
    power_w_ = [lie_w](double) { return lie_w; };
    EXPECT_FALSE(energy_mj()) << lie_w;
  }
  power_w_ = [](double now_s) { return std::fmod(now_s, 0.06) < 0.03 ? 100 : 1e6; };
  EXPECT_FALSE(energy_mj()) << "now and then";
}

TEST_F(EnergyTest, ReadingsThatScatterAreSteady) {
  power_w_ = [](double now_s) { return 100 + 3 * std::sin(1000 * now_s); };
  EXPECT_NEAR(energy_mj().value(), 100, 1);
  EXPECT_LT(now_s_, 1.2);
}

TEST_F(EnergyTest, PowerThatNeverSettlesIsTakenAsItIsAfterAWhile) {
  power_w_ = [](double now_s) { return 10 + 100 * now_s; };
  // From 2 s to 2.5 s.
  EXPECT_NEAR(energy_mj().value(), 236, 2);
  EXPECT_NEAR(now_s_, 2.54, 0.03);
}

TEST_F(EnergyTest, APauseOfTheMachineDoesNotCount) {
  power_w_ = [](double now_s) { return flicker(100, now_s); };
  int pauses = 0;
  device_.on_launch = [&] {
    const bool pause = device_.launches % 150 == 0;
    pauses += pause ? 1 : 0;
    now_s_ += pause ? 0.1 : 0.001;
  };
  EXPECT_NEAR(energy_mj().value(), 100, 0.5);
  EXPECT_GE(pauses, 4);
}

TEST_F(EnergyTest, TheKernelRunsWhileAReadingTakesLong) {
  // Launches are queued: they run while the reading is taken, and what is left of them after it.
  double done_s = 0;
  device_.on_launch = [&] { done_s = std::max(done_s, now_s_) + 0.001; };
  device_.on_synchronize = [&] { now_s_ = std::max(now_s_, done_s); };
  power_w_ = [this](double now_s) {
    now_s_ += 0.05;
    return flicker(50, now_s);
  };
  EXPECT_NEAR(energy_mj().value(), 50, 1);
}

TEST_F(EnergyTest, WindowTellsWhetherPowerStayedAndMoved) {
  power_w_ = [](double now_s) { return flicker(50, now_s); };
  EXPECT_TRUE(window().whole);
  EXPECT_TRUE(window().changed);
  power_w_ = [](double) { return 50; };
  EXPECT_TRUE(window().whole);
  EXPECT_FALSE(window().changed) << "the very same for seconds";
  EXPECT_NEAR(window().energy_mj.value(), 50, 1e-6);
  EXPECT_FALSE(energy_mj()) << "an old reading tells of other work";
  power_w_ = [](double now_s) { return now_s < 0.8 ? std::optional(flicker(50, now_s)) : std::nullopt; };
  EXPECT_TRUE(window().energy_mj);
  EXPECT_FALSE(window().whole) << "gone before its end";
  power_w_ = [](double) { return 0; };
  EXPECT_FALSE(window().energy_mj) << "a card that measures none";
}

TEST_F(EnergyTest, NothingWithoutPower) {
  power_w_ = [](double) { return std::nullopt; };
  EXPECT_FALSE(energy_mj());
  EXPECT_EQ(device_.launches, 0);
  power_w_ = [](double now_s) { return now_s < 0.05 ? std::optional(30.0) : std::nullopt; };
  EXPECT_FALSE(energy_mj()) << "gone at once";
  power_w_ = [](double now_s) { return now_s < 0.5 ? std::optional(30.0) : std::nullopt; };
  EXPECT_FALSE(energy_mj()) << "gone before it was known to be steady";
  power_w_ = [](double now_s) { return now_s < 2.3 ? std::optional(flicker(30, now_s)) : std::nullopt; };
  EXPECT_NEAR(energy_mj().value(), 30, 0.01) << "what there is is used";
}

}  // namespace
}  // namespace pascaline::testing
