#include "tuner/energy.hpp"

#include <gtest/gtest.h>

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
  power_w_ = [](double now_s) { return 10 + 100 * now_s; };
  // From 0.1 s to 0.6 s: 45 W on average, a millisecond a launch.
  EXPECT_NEAR(*energy_mj(), 46, 1.1);
  EXPECT_NEAR(reads_, 32, 2) << "every 20 ms";
  EXPECT_NEAR(device_.launches, 620, 21);
}

TEST_F(EnergyTest, NothingWithoutPower) {
  power_w_ = [](double) { return std::nullopt; };
  EXPECT_FALSE(energy_mj());
  EXPECT_EQ(device_.launches, 0);
  power_w_ = [](double now_s) { return now_s < 0.05 ? std::optional(30.0) : std::nullopt; };
  EXPECT_FALSE(energy_mj()) << "gone before anything was integrated";
  power_w_ = [](double now_s) { return now_s < 0.3 ? std::optional(30.0) : std::nullopt; };
  EXPECT_NEAR(*energy_mj(), 30, 1e-9) << "what there is is used";
}

}  // namespace
}  // namespace pascaline::testing
