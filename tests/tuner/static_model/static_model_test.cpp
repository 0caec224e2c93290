#include "tuner/static_model/static_model.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "tests/tuner/static_model/modelled_space.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::modelled_space;
using testing::sm_61_rates;

/// A modelled space bound to a number of blocks.
struct Modelled {
  Space space;
  BoundSpace bound;
  DeviceRates rates = sm_61_rates();

  explicit Modelled(const json& model, std::int64_t blocks = 400)
      : space(Space::parse(modelled_space(model).dump(), "modelled.json")),
        bound(space, space.problem({{"BLOCKS", std::to_string(blocks)}}), sm_61_rates().limits) {}

  [[nodiscard]] Estimate at(std::uint16_t x, const Resources* compiled = nullptr) const {
    return StaticModel(bound, rates).estimate(std::vector<std::uint16_t>{x}, compiled).value();
  }
};

TEST(StaticModelTest, MoreOfAnythingIsNeverFaster) {
  for (const char* key : {"imbalance", "flops", "instructions", "global_bytes", "shared_bytes", "registers",
                          "static_shared_bytes", "global_steps", "prefetched_steps", "shared_steps", "barriers"}) {
    const std::string name(key);
    const std::string value = name == "imbalance"             ? "100 + 50 * X"
                              : name == "registers"           ? "16 + 48 * X"
                              : name == "static_shared_bytes" ? "X * 12000"
                                                              : "X * BLOCKS * 5000";
    for (const std::int64_t blocks : {7, 20, 400}) {
      const Modelled modelled(json{{name, value}}, blocks);
      for (std::uint16_t x = 1; x <= 4; ++x) {
        EXPECT_GE(modelled.at(x).time_us, modelled.at(static_cast<std::uint16_t>(x - 1)).time_us) << name << x;
      }
      if (name != "imbalance" && (blocks == 400 || (name != "registers" && name != "static_shared_bytes"))) {
        EXPECT_GT(modelled.at(4).time_us, modelled.at(0).time_us) << name << " " << blocks;
      }
    }
  }
}

TEST(StaticModelTest, TermsAreWhatALimitAloneWouldTake) {
  const Modelled modelled({{"flops", 256'000'000},
                           {"instructions", 128'000'000},
                           {"shared_bytes", 128'000'000},
                           {"global_bytes", 64'000'000},
                           {"registers", 32}});
  const Estimate estimate = modelled.at(0);
  const double clocks_of_all = modelled.rates.clock_mhz * 20;
  EXPECT_NEAR(estimate.compute_us, 256e6 / 128 / clocks_of_all, 1e-9);
  EXPECT_NEAR(estimate.shared_us, 128e6 / 128 / clocks_of_all, 1e-9);
  EXPECT_NEAR(estimate.global_us, 64e6 / 32 / clocks_of_all, 1e-9);
  EXPECT_GE(estimate.time_us, estimate.compute_us + modelled.rates.launch_us);
  EXPECT_EQ(estimate.registers, 32);
  EXPECT_EQ(estimate.resident_blocks, 16);
  EXPECT_DOUBLE_EQ(estimate.occupancy, 1);
  EXPECT_DOUBLE_EQ(estimate.waves, 400.0 / 320);
}

TEST(StaticModelTest, OneBlockMoreThanAWaveCostsAnotherWave) {
  const json model{{"flops", "BLOCKS * 10000000"}, {"registers", 128}};  // 4 blocks an SM
  const double full = Modelled(model, 80).at(0).time_us;
  const double fewer = Modelled(model, 79).at(0).time_us;
  const double more = Modelled(model, 81).at(0).time_us;
  EXPECT_NEAR(full, fewer, 1e-3 * full);  // but for the memory that the blocks share
  EXPECT_GT(more, 1.2 * full);
  EXPECT_NEAR(Modelled(model, 100).at(0).time_us, more, 1e-3 * more);
}

TEST(StaticModelTest, UnevenBlocksCountWhereNothingEvensThemOut) {
  const json model{{"flops", "BLOCKS * 10000000"}, {"registers", 128}, {"imbalance", "100 + 100 * X"}};
  EXPECT_GT(Modelled(model, 20).at(1).time_us, 1.8 * Modelled(model, 20).at(0).time_us);
  EXPECT_LT(Modelled(model, 2000).at(1).time_us, 1.2 * Modelled(model, 2000).at(0).time_us);
}

TEST(StaticModelTest, ResidentBlocksHideWaits) {
  // The same work; with fewer registers more blocks wait at a time.
  const Modelled modelled({{"registers", "32 + 50 * X"}, {"global_steps", 50}});
  EXPECT_GT(modelled.at(4).time_us, 2 * modelled.at(0).time_us);
}

TEST(StaticModelTest, ABinaryTellsBetter) {
  const Modelled modelled({{"flops", "BLOCKS * 1000000"}, {"instructions", "BLOCKS * 100000"}, {"registers", 32}});
  Resources clean{.registers = 32, .instructions = 1000, .ffma = 500};
  Resources spilling = clean;
  spilling.local_loads = spilling.local_stores = 100;
  Resources large = clean;
  large.registers = 200;
  EXPECT_DOUBLE_EQ(modelled.at(0, &clean).time_us, modelled.at(0).time_us);
  EXPECT_GT(modelled.at(0, &spilling).time_us, modelled.at(0, &clean).time_us);
  EXPECT_GT(modelled.at(0, &large).time_us, modelled.at(0, &clean).time_us);
  EXPECT_EQ(modelled.at(0, &large).registers, 200);
  const Resources of_ptx;  // nothing known
  EXPECT_DOUBLE_EQ(modelled.at(0, &of_ptx).time_us, modelled.at(0).time_us);
  large.static_shared_bytes = 40'000;
  EXPECT_EQ(modelled.at(0, &large).resident_blocks, 2);
}

TEST(StaticModelTest, TheMixOfTheBinaryStandsForInstructionsNotGiven) {
  const Modelled modelled({{"flops", "BLOCKS * 1000000"}, {"registers", 32}});
  const Resources dense{.registers = 32, .instructions = 1000, .ffma = 900};
  const Resources thin{.registers = 32, .instructions = 1000, .ffma = 300};
  EXPECT_GT(modelled.at(0, &thin).compute_us, 2 * modelled.at(0, &dense).compute_us);
  const Resources none{.registers = 32, .instructions = 1000, .ffma = 0};
  EXPECT_TRUE(std::isfinite(modelled.at(0, &none).time_us));
}

TEST(StaticModelTest, WhatFitsNoMultiprocessorTakesForever) {
  const Modelled modelled(json{{"static_shared_bytes", 49'153}});
  EXPECT_FALSE(modelled.at(0).fits);
  EXPECT_TRUE(std::isinf(modelled.at(0).time_us));
  const StaticModel model(modelled.bound, modelled.rates);
  EXPECT_FALSE(model.predicted_log_time(modelled.space.general_default()));
}

TEST(StaticModelTest, WithoutASectionWorkAndGeometryDecide) {
  EXPECT_GT(Modelled(nullptr, 4000).at(0).time_us, Modelled(nullptr, 400).at(0).time_us);
  const Modelled modelled(nullptr);
  EXPECT_NEAR(modelled.at(0).compute_us, 400 * 50'000.0 / 128 / 20 / modelled.rates.clock_mhz, 1e-9);
  EXPECT_NEAR(StaticModel(modelled.bound, modelled.rates).predicted_log_time(modelled.space.general_default()).value(),
              std::log(modelled.at(0).time_us), 1e-12);
}

TEST(StaticModelTest, AnExpressionWithoutValueIsToldWithTheFile) {
  for (const char* bad : {"100 / X", "-1 - X"}) {
    const Modelled modelled(json{{"flops", bad}});
    const StaticModel model(modelled.bound, modelled.rates);
    EXPECT_FALSE(model.time_us(std::vector<std::uint16_t>{0}));
    EXPECT_FALSE(model.predicted_log_time(modelled.space.general_default()));
    try {
      (void)estimate(modelled.bound, modelled.space.general_default(), modelled.rates);
      FAIL() << bad;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("modelled.json"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("X=0"), std::string::npos) << error.what();
    }
  }
}

TEST(StaticModelTest, AConfigurationOfAnotherSpaceIsRefused) {
  const Modelled modelled(nullptr);
  EXPECT_THROW((void)estimate(modelled.bound, Config({{"Y", std::int64_t{1}}}), modelled.rates), Error);
  EXPECT_THROW((void)estimate(modelled.bound, Config({{"X", std::int64_t{9}}}), modelled.rates), Error);
}

}  // namespace
}  // namespace pascaline
