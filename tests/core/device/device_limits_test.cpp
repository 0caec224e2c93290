#include "core/device/device_limits.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace pascaline {
namespace {

struct Expected {
  int threads;
  int registers;
  std::int64_t shared_bytes;
  int blocks;
};

// Computed by hand from NVIDIA's occupancy calculator rules for compute capability 6.1: 64 warps and 32 blocks an SM,
// 65536 registers in four partitions handed out by 256 a warp, 96 KiB of shared memory by 256 bytes.
const Expected kPascal[] = {
    {256, 128, 17306, 2},  // 16.9 KB; registers: 4 warps a partition, 16 in all, 8 a block
    {256, 32, 0, 8},       // threads: 2048 / 256
    {32, 16, 0, 32},       // blocks
    {64, 32, 0, 32},       // blocks and threads at once
    {128, 64, 0, 8},       // registers: 32 warps
    {128, 65, 0, 7},       // 72 after rounding: 7 warps a partition, 28 in all
    {256, 255, 0, 1},      // registers: 8 warps
    {1024, 64, 0, 1},      // registers: 32 warps
    {1024, 65, 0, 0},      // a block needs more registers than there are
    {1024, 32, 0, 2},      // threads
    {96, 40, 0, 16},       // 12 warps a partition, 48 in all, 3 a block
    {33, 32, 0, 32},       // two warps
    {256, 32, 49152, 2},   // shared memory
    {256, 32, 49153, 0},   // more than a block may have
    {256, 32, 32768, 3},   // shared memory
    {256, 32, 32769, 2},   // rounded up by 256
    {256, 0, 0, 8},        // registers unknown
    {0, 32, 0, 0},         // nothing to run
    {1025, 32, 0, 0},      // more threads than a block may have
    {32, 256, 0, 0},       // more registers than a thread may have
};

TEST(ResidentBlocksTest, KnownValuesOfPascal) {
  const DeviceLimits limits = *limits_of_architecture("sm_61");
  for (const Expected& test : kPascal) {
    EXPECT_EQ(resident_blocks(limits, test.threads, test.registers, test.shared_bytes), test.blocks)
        << test.threads << " threads, " << test.registers << " registers, " << test.shared_bytes << " bytes";
  }
}

TEST(ResidentBlocksTest, OtherArchitectures) {
  EXPECT_EQ(resident_blocks(*limits_of_architecture("sm_75"), 256, 32, 0), 4);
  EXPECT_EQ(resident_blocks(*limits_of_architecture("sm_86"), 256, 32, 0), 6);
  EXPECT_EQ(resident_blocks(*limits_of_architecture("sm_60"), 128, 32, 32 * 1024), 2);
  EXPECT_EQ(resident_blocks(*limits_of_architecture("sm_62"), 1024, 64, 0), 0) << "32 Ki registers a block";
}

TEST(OccupancyTest, IsResidentWarpsOverTheMaximum) {
  const DeviceLimits limits = *limits_of_architecture("sm_61");
  EXPECT_DOUBLE_EQ(occupancy(limits, 256, 128, 17306), 0.25);
  EXPECT_DOUBLE_EQ(occupancy(limits, 256, 32, 0), 1.0);
  EXPECT_DOUBLE_EQ(occupancy(limits, 33, 32, 0), 1.0);
  EXPECT_DOUBLE_EQ(occupancy(limits, 1025, 32, 0), 0.0);
  EXPECT_DOUBLE_EQ(occupancy(limits, 0, 32, 0), 0.0);
}

TEST(DeviceLimitsTest, ArchitecturesByName) {
  EXPECT_FALSE(limits_of_architecture("sm_99").has_value());
  EXPECT_FALSE(limits_of_architecture("").has_value());
  for (const char* name :
       {"sm_50", "sm_52", "sm_60", "sm_61", "sm_62", "sm_70", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90"}) {
    ASSERT_TRUE(limits_of_architecture(name).has_value()) << name;
    EXPECT_EQ(limits_of_architecture(name)->max_shared_bytes_per_block, 48 * 1024) << name;
  }
  EXPECT_EQ(limits_of_architecture("sm_61")->max_shared_bytes_per_sm, 96 * 1024);
  EXPECT_EQ(limits_of_architecture("sm_60")->max_shared_bytes_per_sm, 64 * 1024);
}

TEST(DeviceLimitsTest, EveryMemberIsNamedOnce) {
  std::set<std::string_view> names;
  for (const auto& [name, member] : limit_members()) {
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(names.size() * sizeof(std::int64_t), sizeof(DeviceLimits));
}

TEST(DeviceLimitsTest, TighterTakesTheLowerButKeepsTheActualCard) {
  DeviceLimits actual;
  actual.sm_count = 132;
  actual.l2_bytes = 50 << 20;
  actual.max_shared_bytes_per_sm = 228 * 1024;
  actual.max_registers_per_block = 32 * 1024;
  const DeviceLimits both = tighter(actual, *limits_of_architecture("sm_61"));
  EXPECT_EQ(both.sm_count, 132);
  EXPECT_EQ(both.l2_bytes, 50 << 20);
  EXPECT_EQ(both.max_shared_bytes_per_sm, 96 * 1024);
  EXPECT_EQ(both.max_registers_per_block, 32 * 1024);
}

}  // namespace
}  // namespace pascaline
