#include "tuner/static_model/code_estimate.hpp"

#include <gtest/gtest.h>

#include "core/util/paths.hpp"
#include "tests/runtime/device/sm61/code_fixture.hpp"
#include "tests/tuner/static_model/modelled_space.hpp"
#include "tuner/static_model/loop_trips.hpp"

namespace pascaline {
namespace {

using testing::assemble;
using testing::ffma;
using testing::if_p0;
using testing::jump;
using testing::kBranch;
using testing::kExit;
using testing::sm_61_rates;
using testing::Word;

constexpr std::uint64_t kLoad = 0xeed6200000071418;   // LDG.E.128
constexpr std::uint64_t kStore = 0xeede200000071418;  // STG.E.128
constexpr std::size_t kProducts = 200;                // FFMA of a loop

sm61::KernelCode code_of(std::vector<Word> words, int registers = 32) {
  words.push_back({kExit});
  sm61::KernelCode kernel;
  kernel.registers = registers;
  kernel.instructions = sm61::decode(assemble(words));
  kernel.flow = sm61::find_control_flow(kernel.instructions);
  kernel.costs = sm61::loop_costs(kernel.instructions, kernel.flow);
  kernel.hottest = sm61::hottest_loop(kernel.flow, kernel.costs);
  return kernel;
}

void add_loop(std::vector<Word>& words, std::size_t products, unsigned third, const std::vector<Word>& more = {}) {
  const std::size_t header = words.size();
  words.insert(words.end(), products, Word{ffma(0, 1, 2, third)});
  words.insert(words.end(), more.begin(), more.end());
  words.push_back({if_p0(jump(kBranch, words.size(), header))});
}

// One loop; the registers of its FFMA are in different banks if `third` is 3, in one bank if it is 5.
sm61::KernelCode one_loop(unsigned third = 3) {
  std::vector<Word> words;
  add_loop(words, kProducts, third);
  return code_of(words);
}

// Work of that many blocks of 256 threads, each thread of which goes round a loop of `kProducts` so often.
LaunchWork work_of(double blocks, double trips) {
  LaunchWork work;
  work.blocks = blocks;
  work.threads = 256;
  work.grid_threads = blocks * 256;
  work.flops = 2.0 * kProducts * trips * work.grid_threads;
  return work;
}

TEST(CodeEstimate, TimeFollowsFromTripsAndTheLoop) {
  const DeviceRates rates = sm_61_rates();
  const auto estimate = estimate_from_code(one_loop(), work_of(160, 1000), rates);
  ASSERT_TRUE(estimate);
  EXPECT_DOUBLE_EQ(estimate->trips, 1000);
  EXPECT_EQ(estimate->resident_blocks, 8);
  EXPECT_DOUBLE_EQ(estimate->waves, 1);
  // 64 warps on four schedulers, 201 instructions of each a thousand times, at the card's clock.
  const double expected = 16.0 * 201 * 1000 / rates.clock_mhz;
  EXPECT_NEAR(estimate->least.loops_us, expected, 0.01 * expected);
  EXPECT_NEAR(estimate->time_us(), expected, 0.02 * expected);
  EXPECT_NEAR(estimate->least.arithmetic, 1, 0.02);
  EXPECT_EQ(estimate->most.limit, LaunchLimit::issue);
  const auto twice = estimate_from_code(one_loop(), work_of(320, 1000), rates);
  EXPECT_NEAR(twice->least.loops_us, 2 * expected, 0.02 * expected);
}

TEST(CodeEstimate, ConflictsMakeTheRange) {
  const auto estimate = estimate_from_code(one_loop(5), work_of(160, 1000), sm_61_rates());
  ASSERT_TRUE(estimate);
  EXPECT_NEAR(estimate->most.loops_us, 2 * estimate->least.loops_us, 0.05 * estimate->most.loops_us);
  EXPECT_EQ(estimate->least.limit, LaunchLimit::issue);
  EXPECT_EQ(estimate->most.limit, LaunchLimit::conflicts);
  EXPECT_GT(estimate->time_us(), estimate->least.time_us);
  EXPECT_LT(estimate->time_us(), estimate->most.time_us);
}

TEST(CodeEstimate, AMeasuredConflictHoldsAtBothEnds) {
  const auto assumed = estimate_from_code(one_loop(5), work_of(160, 1000), sm_61_rates());
  EXPECT_FALSE(assumed->measured_conflict);
  MeasuredRates measured;
  const auto at = [&](double slots) {
    measured.values[static_cast<std::size_t>(ProbeQuantity::conflict_slots)] = slots;
    return estimate_from_code(one_loop(5), work_of(160, 1000), sm_61_rates(), sm61::sm_rates(measured)).value();
  };
  for (const auto& [slots, end] : {std::pair(0.0, assumed->least), std::pair(1.0, assumed->most)}) {
    const CodeEstimate estimate = at(slots);
    EXPECT_EQ(estimate.measured_conflict, slots);
    EXPECT_DOUBLE_EQ(estimate.least.time_us, end.time_us);
    EXPECT_DOUBLE_EQ(estimate.most.time_us, end.time_us);
    EXPECT_EQ(estimate.most.limit, end.limit);
  }
  const CodeEstimate between = at(0.5);
  EXPECT_DOUBLE_EQ(between.least.time_us, between.most.time_us);
  EXPECT_GT(between.time_us(), 1.2 * assumed->least.time_us);
  EXPECT_LT(1.2 * between.time_us(), assumed->most.time_us);
}

TEST(CodeEstimate, FewBlocksLeaveSmsIdle) {
  const auto few = estimate_from_code(one_loop(), work_of(2, 1000), sm_61_rates(20));
  const auto enough = estimate_from_code(one_loop(), work_of(20, 1000), sm_61_rates(20));
  EXPECT_EQ(few->most.limit, LaunchLimit::few_blocks);
  EXPECT_EQ(enough->most.limit, LaunchLimit::issue);
  EXPECT_NEAR(few->least.loops_us, enough->least.loops_us, 0.01 * few->least.loops_us);
  // The same blocks on three SMs take seven times as long.
  const auto small = estimate_from_code(one_loop(), work_of(20, 1000), sm_61_rates(3));
  const double clocks_of_20 = enough->least.loops_us * sm_61_rates(20).clock_mhz;
  EXPECT_NEAR(small->least.loops_us * sm_61_rates(3).clock_mhz, 7 * clocks_of_20, 0.1 * clocks_of_20);
}

TEST(CodeEstimate, DeviceMemoryBoundsFromBelow) {
  LaunchWork work = work_of(160, 10);
  work.compulsory_bytes = 320e6;  // a millisecond
  const auto estimate = estimate_from_code(one_loop(), work, sm_61_rates());
  EXPECT_NEAR(estimate->memory_us, 1000, 1);
  EXPECT_GT(estimate->least.time_us, 1000);
  EXPECT_EQ(estimate->most.limit, LaunchLimit::device_memory);
  EXPECT_EQ(estimate_from_code(one_loop(), work_of(1, 1), sm_61_rates())->most.limit, LaunchLimit::launch);
}

TEST(CodeEstimate, BytesGiveTripsWhereThereIsNoArithmetic) {
  const sm61::KernelCode kernel = code_of({{kLoad}, {if_p0(jump(kBranch, 1, 0))}});
  LaunchWork work = work_of(160, 0);
  work.global_bytes = 16.0 * 50 * work.grid_threads;
  EXPECT_DOUBLE_EQ(estimate_from_code(kernel, work, sm_61_rates())->trips, 50);
  work.global_bytes = 0;
  EXPECT_FALSE(estimate_from_code(kernel, work, sm_61_rates())) << "nothing tells how often it runs";
}

TEST(CodeEstimate, LoopsBesideAndAroundAreCounted) {
  std::vector<Word> words{{kLoad}};
  add_loop(words, kProducts, 3);
  add_loop(words, kProducts / 2, 3);
  words.push_back({kStore});
  words.push_back({if_p0(jump(kBranch, words.size(), 0))});
  const sm61::KernelCode kernel = code_of(words);
  ASSERT_EQ(kernel.flow.loops.size(), 3U);
  LaunchWork work = work_of(160, 150);
  work.output_bytes = 16.0 * 10 * work.grid_threads;
  const std::vector<CountedLoop> loops = counted_loops(kernel, work);
  ASSERT_EQ(loops.size(), 3U);
  EXPECT_EQ(loops[0].loop, *kernel.hottest);
  EXPECT_DOUBLE_EQ(loops[0].trips, 100) << "work for 150 rounds of the longer loop";
  EXPECT_DOUBLE_EQ(loops[1].trips, 100);
  EXPECT_DOUBLE_EQ(loops[2].trips, 10) << "by what it stores";
  EXPECT_TRUE(loops[2].own_only);
  EXPECT_EQ(loops[2].cost.instructions, 3U);
  work.output_bytes = 0;
  work.global_bytes = 16.0 * 20 * work.grid_threads;
  EXPECT_DOUBLE_EQ(counted_loops(kernel, work)[2].trips, 20) << "by what it loads";
  work.global_bytes = 16.0 * 1e6 * work.grid_threads;
  EXPECT_DOUBLE_EQ(counted_loops(kernel, work)[2].trips, 100) << "no more often than the loop inside";
}

TEST(CodeEstimate, LoopsOfANestCountAtWhateverDepth) {
  // A loop of half as many products, and behind it in a loop of its own the hottest, all in one loop.
  std::vector<Word> words{{kLoad}};
  add_loop(words, kProducts / 2, 3);
  const std::size_t middle = words.size();
  words.push_back({kLoad});
  add_loop(words, kProducts, 3);
  words.push_back({if_p0(jump(kBranch, words.size(), middle))});
  words.push_back({if_p0(jump(kBranch, words.size(), 0))});
  const sm61::KernelCode kernel = code_of(words);
  ASSERT_EQ(kernel.flow.loops.size(), 4U);
  LaunchWork work = work_of(160, 150);
  work.global_bytes = 16.0 * 20 * work.grid_threads;
  const std::vector<CountedLoop> loops = counted_loops(kernel, work);
  ASSERT_EQ(loops.size(), 4U);
  EXPECT_EQ(loops[0].loop, *kernel.hottest);
  EXPECT_DOUBLE_EQ(loops[0].trips, 100);
  EXPECT_EQ(loops[1].cost.arithmetic(), kProducts / 2);
  EXPECT_DOUBLE_EQ(loops[1].trips, 100);
  EXPECT_EQ(kernel.flow.loops[loops[2].loop].depth, 2U) << "from the inside out";
  EXPECT_EQ(kernel.flow.loops[loops[3].loop].depth, 1U);
  EXPECT_TRUE(loops[2].own_only && loops[3].own_only);
  EXPECT_DOUBLE_EQ(loops[2].trips, 20);
  EXPECT_LE(loops[3].trips, 100);
}

TEST(CodeEstimate, WhatTheSpaceSaysOfSharedMemoryReplacesTheRange) {
  constexpr std::uint64_t kWideLoad = 0xef4e000000071808;  // LDS.U.128
  std::vector<Word> words;
  add_loop(words, 20, 3, std::vector<Word>(20, Word{kWideLoad}));
  const sm61::KernelCode kernel = code_of(words);
  LaunchWork work = work_of(160, 100);
  const double issued = 16.0 * 20 * (work.flops / 2 / 20);  // bytes of all loads
  const auto unknown = estimate_from_code(kernel, work, sm_61_rates());
  EXPECT_NEAR(unknown->most.loops_us, 2 * unknown->least.loops_us, 0.1 * unknown->most.loops_us);
  EXPECT_EQ(unknown->most.limit, LaunchLimit::shared_memory);
  const auto loops_us = [&](double share) {
    work.shared_bytes = share * issued;
    const auto estimate = estimate_from_code(kernel, work, sm_61_rates());
    EXPECT_NEAR(estimate->most.loops_us, estimate->least.loops_us, 0.05 * estimate->most.loops_us);
    return estimate->least.loops_us;
  };
  EXPECT_NEAR(loops_us(0.5), unknown->least.loops_us, 0.05 * unknown->least.loops_us);
  EXPECT_NEAR(loops_us(1), unknown->most.loops_us, 0.05 * unknown->most.loops_us);
  EXPECT_NEAR(loops_us(2), 2 * unknown->most.loops_us, 0.1 * unknown->most.loops_us) << "bank conflicts";
}

TEST(CodeEstimate, NothingForWhatFitsNoSm) {
  sm61::KernelCode kernel = one_loop();
  kernel.registers = 255;
  LaunchWork work = work_of(160, 1000);
  work.threads = 1024;
  EXPECT_FALSE(estimate_from_code(kernel, work, sm_61_rates()));
}

TEST(CodeEstimate, WhatLimitsResidencyIsNamed) {
  const DeviceLimits limits = sm_61_rates().limits;
  EXPECT_EQ(residency_limit(limits, 256, 128, 1024), ResidencyLimit::registers);
  EXPECT_EQ(residency_limit(limits, 256, 32, 40 * 1024), ResidencyLimit::shared_memory);
  EXPECT_EQ(residency_limit(limits, 256, 32, 1024), ResidencyLimit::threads);
  EXPECT_EQ(residency_limit(limits, 128, 96, 17408), ResidencyLimit::both);
  EXPECT_EQ(name_of(ResidencyLimit::both), "registers and shared memory");
  EXPECT_EQ(name_of(ResidencyLimit::threads), "threads and blocks");
}

TEST(CodeEstimate, OfAStoredKernelIsNearItsIssueSlots) {
  const Space space = Space::load(data_folder("search_spaces") / "matmul.json");
  const DeviceRates rates = sm_61_rates();
  const BoundSpace bound(space, space.problem({{"M", "512"}, {"N", "2048"}, {"K", "2048"}}), rates.limits);
  const LaunchWork work = launch_work(bound, space.general_default());
  EXPECT_DOUBLE_EQ(work.flops, 2.0 * 512 * 2048 * 2048);
  EXPECT_DOUBLE_EQ(work.output_bytes, 4.0 * 512 * 2048);
  Binary binary;
  binary.function = "matmul";
  binary.code = testing::stored_cubin("matmul");
  const auto estimate = estimate_from_code(binary, bound, space.general_default(), rates);
  ASSERT_TRUE(estimate);
  // 128 slices of BLOCK_K = 16, of 256 tiles, shared by the blocks.
  EXPECT_NEAR(estimate->trips, 128.0 * 256 / work.blocks, 1e-9);
  const double peak_us = 512.0 * 2048 * 2048 / (128.0 * 20 * rates.clock_mhz);
  EXPECT_GT(estimate->least.time_us, peak_us);
  EXPECT_LT(estimate->most.time_us, 4 * peak_us);
  binary.code = "no cubin";
  EXPECT_FALSE(estimate_from_code(binary, bound, space.general_default(), rates));
  binary.kind = BinaryKind::ptx;
  EXPECT_FALSE(estimate_from_code(binary, bound, space.general_default(), rates));
}

}  // namespace
}  // namespace pascaline
