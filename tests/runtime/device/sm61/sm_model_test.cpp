#include "runtime/device/sm61/sm_model.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "core/error.hpp"
#include "tests/runtime/device/sm61/code_fixture.hpp"

namespace pascaline::sm61 {
namespace {

using testing::assemble;
using testing::ffma;
using testing::if_p0;
using testing::jump;
using testing::kBranch;
using testing::kExit;
using testing::Word;

constexpr std::uint64_t kGlobalLoad = 0xeed6200000071418;   // LDG.E.128
constexpr std::uint64_t kSharedLoad = 0xef4c000000071809;   // LDS
constexpr std::uint64_t kBarrierSync = 0xf0a81b8000070000;  // BAR.SYNC 0x0

// Scheduling words: stall, barrier released by the result, barriers waited for.
constexpr std::uint32_t scheduled(std::uint32_t stall, std::uint32_t write = 7, std::uint32_t waits = 0) {
  return stall | write << 5U | 7U << 8U | waits << 11U;
}

KernelCode looping(std::vector<Word> words) {
  words.push_back({if_p0(jump(kBranch, words.size(), 0)), scheduled(1)});
  words.push_back({kExit});
  KernelCode kernel;
  kernel.instructions = decode(assemble(words));
  kernel.flow = find_control_flow(kernel.instructions);
  EXPECT_EQ(kernel.flow.loops.size(), 1U);
  return kernel;
}

std::vector<Word> multiplications(std::size_t count, std::uint32_t stall, unsigned third = 3) {
  return std::vector<Word>(count, {ffma(0, 1, 2, third), scheduled(stall)});
}

LoopTime time_of(const KernelCode& kernel, ResidentWarps warps, const SmRates& rates = {}) {
  const LoopTime time = time_of_loop(kernel, 0, warps, rates);
  EXPECT_NEAR(std::accumulate(time.shares.begin(), time.shares.end(), 0.0), 1, 1e-9);
  EXPECT_LE(time.arithmetic, 1);
  return time;
}

TEST(Sm61SmModel, IndependentArithmeticIssuesEveryClock) {
  const LoopTime time = time_of(looping(multiplications(200, 1)), {1, 4});
  EXPECT_NEAR(time.arithmetic, 200.0 / 201, 0.01);
  EXPECT_NEAR(time.clocks, 201, 3);
  EXPECT_EQ(time.limit(), SlotUse::issued);
}

TEST(Sm61SmModel, MoreWarpsHideStalls) {
  const KernelCode kernel = looping(multiplications(200, 6));
  const LoopTime alone = time_of(kernel, {1, 4});
  EXPECT_NEAR(alone.arithmetic, 1.0 / 6, 0.01);
  EXPECT_EQ(alone.limit(), SlotUse::latency);
  EXPECT_NEAR(time_of(kernel, {3, 4}).arithmetic, 0.5, 0.02);
  EXPECT_GT(time_of(kernel, {8, 4}).arithmetic, 0.97);
  EXPECT_NEAR(time_of(kernel, {1, 2}).arithmetic, 1.0 / 12, 0.01) << "two schedulers have no warp";
}

TEST(Sm61SmModel, ConflictsCostWhatTheRatesSay) {
  const KernelCode kernel = looping(multiplications(200, 1, 5U));  // R1 and R5
  for (const auto& [cost, expected] : {std::pair(0.0, 1.0), {0.5, 2.0 / 3}, {1.0, 0.5}}) {
    SmRates rates;
    rates.conflict = cost;
    const LoopTime time = time_of(kernel, {2, 4}, rates);
    EXPECT_NEAR(time.arithmetic, expected, 0.02) << cost;
    EXPECT_NEAR(time.share(SlotUse::conflict), 1 - expected, 0.02) << cost;
  }
}

TEST(Sm61SmModel, TwoInstructionsMayIssueInOneClock) {
  std::vector<Word> words;
  for (int i = 0; i < 100; ++i) {
    words.push_back({ffma(0, 1, 2, 3), scheduled(0)});
    words.push_back({0x5c98078000170000, scheduled(1)});  // MOV R0, R1
  }
  EXPECT_NEAR(time_of(looping(words), {1, 4}).arithmetic, 1, 0.02);
}

TEST(Sm61SmModel, SharedMemoryIsOneForAllWarps) {
  std::vector<Word> words = multiplications(16, 1);
  for (int i = 0; i < 8; ++i) {
    words.push_back({kSharedLoad, scheduled(1)});
  }
  // Eight loads of 128 bytes for each of 16 warps: 128 clocks, and 64 of arithmetic.
  const LoopTime time = time_of(looping(words), {4, 4});
  EXPECT_NEAR(time.clocks, 128, 8);
  EXPECT_EQ(time.limit(), SlotUse::pipe);
  SmRates twice;
  twice.shared_bytes = 256;
  EXPECT_NEAR(time_of(looping(words), {4, 4}, twice).clocks, 16.0 * 25 / 4, 8);
}

TEST(Sm61SmModel, WideLoadsTakeTheirPartWhereLanesShareWords) {
  constexpr std::uint64_t kWideLoad = 0xef4e000000071808;  // LDS.U.128
  std::vector<Word> words;
  for (int i = 0; i < 8; ++i) {
    words.push_back({kWideLoad, scheduled(1)});
  }
  ASSERT_EQ(looping(words).instructions[0].bytes, 16);
  // Eight loads of 512 bytes for each of 16 warps, and half of that.
  const LoopTime whole = time_of(looping(words), {4, 4});
  EXPECT_NEAR(whole.clocks, 512, 16);
  EXPECT_NEAR(whole.busy_shared, whole.share(SlotUse::pipe), 1e-9);
  EXPECT_EQ(whole.busy_global, 0);
  SmRates shared;
  shared.wide_loads = 0.5;
  EXPECT_NEAR(time_of(looping(words), {4, 4}, shared).clocks, 256, 16);
  EXPECT_NEAR(time_of(looping(std::vector<Word>(8, {kSharedLoad, scheduled(1)})), {4, 4}, shared).clocks, 128, 8)
      << "narrow loads take what they took";
}

TEST(Sm61SmModel, CodeOutsideLoopsIsPlayedOnItsOwn) {
  std::vector<Word> words = multiplications(40, 1);
  const KernelCode inside = looping(words);
  EXPECT_NEAR(time_outside_loops(inside, {1, 4}).clocks, 1, 1) << "the end of the kernel";
  words.push_back({kExit});
  KernelCode straight;
  straight.instructions = decode(assemble(words));
  straight.flow = find_control_flow(straight.instructions);
  EXPECT_NEAR(time_outside_loops(straight, {1, 4}).clocks, 41, 2);
  EXPECT_NEAR(time_outside_loops(straight, {2, 4}).clocks, 82, 3);
  EXPECT_THROW((void)time_outside_loops(straight, {0, 4}), Error);
  EXPECT_EQ(time_outside_loops(KernelCode{}, {1, 4}).clocks, 0);
}

TEST(Sm61SmModel, WhatIsLoadedIsWaitedFor) {
  std::vector<Word> words{{kGlobalLoad, scheduled(1, 0)}, {ffma(0, 1, 2, 3), scheduled(1, 7, 1)}};
  const SmRates rates;
  const LoopTime time = time_of(looping(words), {1, 4});
  EXPECT_GT(time.clocks, rates.global_latency);
  EXPECT_LT(time.clocks, rates.global_latency + 60);
  EXPECT_EQ(time.limit(), SlotUse::global_memory);
  words[1].control = scheduled(1);
  EXPECT_LT(time_of(looping(words), {1, 4}).clocks, 60) << "nothing waits for it";
}

TEST(Sm61SmModel, WarpsOfABlockMeetAtBarriers) {
  std::vector<Word> words = multiplications(20, 1);
  words.push_back({kBarrierSync, scheduled(5)});
  const KernelCode kernel = looping(words);
  EXPECT_GT(time_of(kernel, {1, 8}).clocks, 43);
  const LoopTime several = time_of(kernel, {4, 2});
  EXPECT_LT(several.clocks, 70);
  EXPECT_GT(several.arithmetic, 0.5);
}

TEST(Sm61SmModel, MeasuredRatesTakeThePlaceOfAssumedOnes) {
  const SmRates assumed;
  EXPECT_EQ(sm_rates({}).conflict, assumed.conflict);
  EXPECT_FALSE(sm_rates({}).measured_conflict);
  EXPECT_EQ(sm_rates({}).global_latency, assumed.global_latency);
  MeasuredRates measured;
  const auto set = [&](ProbeQuantity quantity, double value) {
    measured.values[static_cast<std::size_t>(quantity)] = value;
  };
  set(ProbeQuantity::conflict_slots, 0.25);
  set(ProbeQuantity::shared_bytes_per_clock, 127);
  set(ProbeQuantity::l2_bytes_per_clock, 40);
  set(ProbeQuantity::shared_latency, 25);
  set(ProbeQuantity::l2_latency, 230);
  const SmRates rates = sm_rates(measured);
  EXPECT_EQ(rates.conflict, 0.25);
  EXPECT_EQ(rates.shared_bytes, 127);
  EXPECT_EQ(rates.global_bytes, 40);
  EXPECT_EQ(rates.shared_latency, 25);
  EXPECT_EQ(rates.global_latency, 230);
  EXPECT_EQ(rates.unit_latency, assumed.unit_latency);
  set(ProbeQuantity::conflict_slots, -0.002);
  EXPECT_EQ(sm_rates(measured).conflict, 0) << "nothing, but for chance";
  set(ProbeQuantity::conflict_slots, 1.01);
  EXPECT_EQ(sm_rates(measured).conflict, 1);
  EXPECT_TRUE(sm_rates(measured).measured_conflict);
}

TEST(Sm61SmModel, StoredKernelsAreWithinTheirLimits) {
  for (const char* name : {"matmul", "matvec_q", "softmax", "transpose"}) {
    const KernelCode kernel = read_kernel(testing::stored_cubin(name), name);
    if (!kernel.hottest) {
      continue;
    }
    const IssueCost& cost = kernel.costs[*kernel.hottest].own;
    SmRates free;
    free.conflict = 0;
    const LoopTime with = time_of_loop(kernel, *kernel.hottest, {2, 4});
    const LoopTime without = time_of_loop(kernel, *kernel.hottest, {2, 4}, free);
    EXPECT_LE(with.arithmetic, cost.arithmetic_per_slot() + 0.01) << name;
    EXPECT_LE(with.arithmetic, without.arithmetic + 0.02) << name;
    EXPECT_GT(with.share(SlotUse::issued), 0.01) << name;
  }
}

TEST(Sm61SmModel, LoopsAndWarpsThatAreNotThereAreRefused) {
  const KernelCode kernel = looping(multiplications(4, 1));
  EXPECT_THROW((void)time_of_loop(kernel, 1, {1, 4}), Error);
  EXPECT_THROW((void)time_of_loop(kernel, 0, {0, 4}), Error);
  EXPECT_THROW((void)time_of_loop(kernel, 0, {20, 4}), Error) << "more than an SM has";
}

}  // namespace
}  // namespace pascaline::sm61
