#include "core/device/device_rates.hpp"

#include <gtest/gtest.h>

namespace pascaline {
namespace {

DeviceRates sm_61_rates(std::int64_t sm_count) {
  DeviceLimits limits = limits_of_architecture("sm_61").value();
  limits.sm_count = sm_count;
  return typical_rates("sm_61", limits).value();
}

TEST(DeviceRatesTest, PascalCardsAreKnownByTheirSmCount) {
  EXPECT_EQ(sm_61_rates(20).memory_gbps, 320);
  EXPECT_EQ(sm_61_rates(3).memory_gbps, 50);
  EXPECT_EQ(sm_61_rates(10).clock_mhz, 1708);
  EXPECT_EQ(sm_61_rates(7).limits.sm_count, 7);
  EXPECT_GT(sm_61_rates(7).memory_gbps, 0);
  EXPECT_GT(sm_61_rates(132).memory_gbps, sm_61_rates(30).memory_gbps);
}

TEST(DeviceRatesTest, PeakIsTwoOperationsALaneAndClock) {
  // GeForce GTX 1080: 2560 lanes at 1733 MHz.
  EXPECT_NEAR(sm_61_rates(20).peak_gflops(), 8873, 1);
  EXPECT_TRUE(sm_61_rates(20).of_product);
  EXPECT_FALSE(sm_61_rates(7).of_product);
}

TEST(DeviceRatesTest, LanesAreThoseOfTheArchitectureOrNotKnown) {
  EXPECT_EQ(fp32_lanes_of("sm_61"), 128);
  EXPECT_EQ(fp32_lanes_of("6.0"), 64);
  EXPECT_EQ(fp32_lanes_of("sm_120"), 128);
  EXPECT_FALSE(fp32_lanes_of("sm_999"));
  EXPECT_FALSE(fp32_lanes_of("host"));
  const DeviceLimits limits;
  EXPECT_EQ(typical_rates("sm_72", limits)->fp32_lanes, 64);
  EXPECT_EQ(typical_rates("sm_999", limits)->fp32_lanes, 128) << "as the last one that is known";
  EXPECT_EQ(typical_rates("sm_35", limits)->fp32_lanes, 128);
}

TEST(DeviceRatesTest, ArchitectureAndComputeCapabilityMeanTheSame) {
  const DeviceLimits limits;
  for (const char* name : {"sm_61", "compute_61", "6.1"}) {
    const auto rates = typical_rates(name, limits);
    ASSERT_TRUE(rates) << name;
    EXPECT_EQ(rates->memory_gbps, sm_61_rates(limits.sm_count).memory_gbps) << name;
  }
  EXPECT_EQ(typical_rates("sm_60", limits)->fp32_lanes, 64);
}

TEST(DeviceRatesTest, AnArchitectureOfTheFutureIsTakenForTheLastKnown) {
  EXPECT_EQ(typical_rates("sm_120", DeviceLimits{})->shared_latency,
            typical_rates("9.0", DeviceLimits{})->shared_latency);
}

TEST(DeviceRatesTest, OtherTextsAreRefused) {
  for (const char* name : {"", "host", "61", "sm_", "sm_61x", "gfx_90", "6.x", ".", "sm_-1", "-6.1"}) {
    EXPECT_FALSE(typical_rates(name, DeviceLimits{})) << name;
  }
}

}  // namespace
}  // namespace pascaline
