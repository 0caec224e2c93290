#include "tuner/static_model/energy_estimate.hpp"

#include <gtest/gtest.h>

#include "core/util/paths.hpp"
#include "tests/tuner/static_model/modelled_space.hpp"

namespace pascaline {
namespace {

using testing::modelled_space;
using testing::sm_61_rates;

TEST(EnergyEstimateTest, MoreOfAnythingTakesMoreInTheSameTime) {
  for (const std::string key : {"flops", "instructions", "global_bytes", "shared_bytes"}) {
    const Space space =
        Space::parse(modelled_space({{key, "(X + 1) * BLOCKS * 200000"}, {"registers", 32}}).dump(), "modelled.json");
    const BoundSpace bound(space, space.problem({{"BLOCKS", "400"}}), sm_61_rates().limits);
    const EnergyEstimator energy = energy_estimator(bound, sm_61_rates());
    double before = 0;
    for (std::int64_t x = 0; x <= 4; ++x) {
      const double now = energy(Config({{"X", x}}), 1e5).value();
      EXPECT_GT(now, before) << key << x;
      before = now;
    }
    const Config config({{"X", std::int64_t{2}}});
    EXPECT_GT(energy(config, 2e5), energy(config, 1e5)) << key;
  }
}

TEST(EnergyEstimateTest, ACardAtRestTakesAQuarterAndNothingIsBusyLongerThanTheLaunch) {
  Estimate estimate;
  EXPECT_DOUBLE_EQ(relative_energy(estimate, 40), 10);
  estimate.compute_us = 20;
  EXPECT_DOUBLE_EQ(relative_energy(estimate, 40), 15);
  estimate.shared_us = estimate.global_us = 1e6;
  EXPECT_DOUBLE_EQ(relative_energy(estimate, 40), 35);
}

TEST(EnergyEstimateTest, LargeTilesOfAProductAreThrifty) {
  const Space space = Space::load(data_folder("search_spaces") / "matmul.json");
  const BoundSpace bound(space, space.problem({{"M", "2048"}, {"N", "2048"}, {"K", "2048"}}), sm_61_rates().limits);
  const EnergyEstimator energy = energy_estimator(bound, sm_61_rates());
  const auto tile = [&](std::int64_t size, std::int64_t sums) {
    std::vector<Config::Setting> settings = bound.default_config().settings();
    for (auto& [name, value] : settings) {
      value = name == "BLOCK_M" || name == "BLOCK_N"     ? Value(size)
              : name == "THREAD_M" || name == "THREAD_N" ? Value(sums)
                                                         : value;
    }
    return Config(settings);
  };
  EXPECT_LT(energy(tile(128, 8), 5000), energy(tile(64, 4), 5000));
}

}  // namespace
}  // namespace pascaline
