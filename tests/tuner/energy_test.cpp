#include "tuner/energy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/tuner/relay_device.hpp"
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

  EnergyTest() {
    device_.on_launch = [this] { now_s_ += 0.001; };
    device_.sensors = [this] {
      ++reads_;
      Sensors sensors;
      sensors.power_w = power_w_(now_s_);
      return sensors;
    };
  }
  [[nodiscard]] std::optional<double> energy_mj() {
    ClimateHooks hooks;
    hooks.now_s = [this] { return now_s_; };
    Climate climate(device_, {.passive = true}, hooks);
    TrialRunner runner(climate, bench_.bound(), bench_.reference(), quick_measure(), 1);
    TrialRunner::Ready ready = runner.make_ready(toy_config(64), bench_.compile(toy_config(64)).result.binary);
    now_s_ = 0;
    reads_ = 0;
    device_.launches = 0;
    return measure_energy_mj(climate, ready, 1000, 500);
  }
};

TEST_F(EnergyTest, IntegratesPowerThatChanges) {
  // Steady for the quarter of a second that it has to be, then not.
  power_w_ = [](double now_s) { return now_s < 0.27 ? 10 : 10 + 100 * (now_s - 0.27); };
  // From 0.27 s to 0.77 s: 35 W on average, a millisecond a launch.
  EXPECT_NEAR(energy_mj().value(), 36, 1.1);
  EXPECT_NEAR(reads_, 40, 2) << "every 20 ms";
  EXPECT_NEAR(device_.launches, 790, 21);
}

TEST_F(EnergyTest, WhatRanBeforeIsNotCounted) {
  // A kernel of 500 W after a pause at 100 W, on a card that tells the mean of the last second.
  power_w_ = [](double now_s) { return 100 + 400 * std::min(now_s, 1.0); };
  EXPECT_NEAR(energy_mj().value(), 500, 5);
  // The same the other way round.
  power_w_ = [](double now_s) { return 500 - 400 * std::min(now_s, 1.0); };
  EXPECT_NEAR(energy_mj().value(), 100, 3);
  EXPECT_LT(now_s_, 2);
}

TEST_F(EnergyTest, ReadingsThatScatterAreSteady) {
  power_w_ = [](double now_s) { return 100 + 10 * std::sin(1000 * now_s); };
  EXPECT_NEAR(energy_mj().value(), 100, 3);
  EXPECT_LT(now_s_, 1.2);
}

TEST_F(EnergyTest, PowerThatNeverSettlesIsTakenAsItIsAfterAWhile) {
  power_w_ = [](double now_s) { return 10 + 100 * now_s; };
  // From 2 s to 2.5 s.
  EXPECT_NEAR(energy_mj().value(), 236, 2);
  EXPECT_NEAR(now_s_, 2.54, 0.03);
}

TEST_F(EnergyTest, NothingWithoutPower) {
  power_w_ = [](double) { return std::nullopt; };
  EXPECT_FALSE(energy_mj());
  EXPECT_EQ(device_.launches, 0);
  power_w_ = [](double now_s) { return now_s < 0.05 ? std::optional(30.0) : std::nullopt; };
  EXPECT_FALSE(energy_mj()) << "gone at once";
  power_w_ = [](double now_s) { return now_s < 0.27 ? std::optional(30.0) : std::nullopt; };
  EXPECT_FALSE(energy_mj()) << "gone before it was known to be steady";
  power_w_ = [](double now_s) { return now_s < 0.5 ? std::optional(30.0) : std::nullopt; };
  EXPECT_NEAR(energy_mj().value(), 30, 1e-9) << "what there is is used";
}

}  // namespace
}  // namespace pascaline::testing
