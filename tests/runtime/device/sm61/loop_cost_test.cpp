#include "runtime/device/sm61/loop_cost.hpp"

#include <gtest/gtest.h>

#include "tests/runtime/device/sm61/code_fixture.hpp"

namespace pascaline::sm61 {
namespace {

using testing::assemble;
using testing::ffma;
using testing::if_p0;
using testing::jump;
using testing::kBranch;
using testing::kExit;
using testing::kNop;
using testing::Word;

constexpr std::uint32_t kDual = 0x7e0;

constexpr std::uint32_t keeps(std::uint32_t slots, std::uint32_t stall = 1) { return 0x7e0 | stall | slots << 17U; }

// The cost of a loop of these instructions; its branch is counted, too.
IssueCost loop_of(std::vector<Word> words) {
  words.push_back({if_p0(jump(kBranch, words.size(), 0))});
  words.push_back({kExit});
  const std::vector<Instruction> code = decode(assemble(words));
  const ControlFlow flow = find_control_flow(code);
  EXPECT_EQ(flow.loops.size(), 1U);
  return loop_costs(code, flow).at(0).total;
}

TEST(Sm61LoopCost, RegistersOfOneBankConflict) {
  EXPECT_EQ(loop_of({{ffma(0, 1, 2, 3)}}).bank_conflicts, 0U);
  EXPECT_EQ(loop_of({{ffma(0, 1, 5, 2)}}).bank_conflicts, 1U);
  EXPECT_EQ(loop_of({{ffma(0, 1, 5, 9)}}).bank_conflicts, 2U);
  EXPECT_EQ(loop_of({{ffma(0, 1, 1, 1)}}).bank_conflicts, 0U) << "one register is read once";
  EXPECT_EQ(loop_of({{ffma(0, 3, 255, 7)}}).bank_conflicts, 1U);
  EXPECT_EQ(loop_of({{ffma(0, 3, 255, 255)}}).bank_conflicts, 0U) << "RZ is no register";
  EXPECT_EQ(loop_of({{ffma(4, 1, 2, 8)}}).bank_conflicts, 0U) << "the destination does not count";
}

TEST(Sm61LoopCost, KeptRegistersDoNotConflict) {
  const IssueCost kept = loop_of({{ffma(0, 1, 2, 3), keeps(0b001)}, {ffma(0, 1, 5, 6)}});
  EXPECT_EQ(kept.bank_conflicts, 0U);
  EXPECT_EQ(kept.reuses, 1U);
  EXPECT_EQ(loop_of({{ffma(0, 1, 2, 3)}, {ffma(0, 1, 5, 6)}}).bank_conflicts, 1U) << "not kept";
  EXPECT_EQ(loop_of({{ffma(0, 2, 1, 3), keeps(0b010)}, {ffma(0, 1, 5, 6)}}).bank_conflicts, 1U) << "another slot";
  EXPECT_EQ(loop_of({{ffma(0, 1, 2, 3), keeps(0b001)}, {kNop}, {ffma(0, 1, 5, 6)}}).bank_conflicts, 1U)
      << "kept for one instruction only";
  EXPECT_EQ(loop_of({{ffma(0, 9, 2, 3), keeps(0b001)}, {ffma(0, 1, 5, 6)}}).bank_conflicts, 1U) << "another register";
}

TEST(Sm61LoopCost, CountsByKindAndSpace) {
  const IssueCost cost = loop_of({{ffma(0, 1, 2, 3), kDual},
                                  {0xeed6200000071418, 0x7e2},  // LDG.E.128
                                  {0xef5d000450070812, 0x7e3},  // STS.64
                                  {0xef4c000000071809, 0x7e1},  // LDS
                                  {0x53faad8001473818, 0x7ef},  // IDP.4A
                                  {0x5c58000000770601},         // FADD
                                  {0x5b007f8004373406},         // XMAD
                                  {0x5080000000470402},         // MUFU.RCP
                                  {0x5cb8000002072620},         // I2F
                                  {0xf0a81b8000070000},         // BAR.SYNC
                                  {0xef17007cf1070204},         // SHFL
                                  {0xed01000000770403},         // ATOM
                                  {0x5b70050000a70a0c}});       // DFMA
  EXPECT_EQ(cost.instructions, 14U);
  for (const Kind kind : {Kind::ffma, Kind::store, Kind::dp4a, Kind::float32, Kind::integer, Kind::special,
                          Kind::conversion, Kind::barrier, Kind::shuffle, Kind::atomic, Kind::float64, Kind::control}) {
    EXPECT_EQ(cost.of(kind), 1U) << static_cast<int>(kind);
  }
  EXPECT_EQ(cost.of(Kind::load), 2U);
  EXPECT_EQ(cost.of(Space::global).loaded_bytes, 16U);
  EXPECT_EQ(cost.of(Space::global).stored_bytes, 0U);
  EXPECT_EQ(cost.of(Space::shared).loaded_bytes, 4U);
  EXPECT_EQ(cost.of(Space::shared).stored_bytes, 8U);
  EXPECT_EQ(cost.of(Space::shared).stores, 1U);
  EXPECT_EQ(cost.dual_issues, 1U);
  EXPECT_EQ(cost.stall_clocks, 0U + 2 + 3 + 1 + 15 + 9 * 1);
  EXPECT_EQ(cost.arithmetic(), 2U);
  EXPECT_EQ(cost.issue_slots(), cost.instructions - 1 + cost.bank_conflicts);
  EXPECT_DOUBLE_EQ(cost.arithmetic_share(), 2.0 / 14);
}

TEST(Sm61LoopCost, OwnCostLeavesInnerLoopsOut) {
  const std::vector<Instruction> code = decode(assemble({{ffma(0, 1, 2, 3)},
                                                         {ffma(0, 1, 2, 3)},  // inner
                                                         {if_p0(jump(kBranch, 2, 1))},
                                                         {ffma(0, 1, 2, 3)},
                                                         {if_p0(jump(kBranch, 4, 0))},
                                                         {kExit}}));
  const ControlFlow flow = find_control_flow(code);
  const std::vector<LoopCost> costs = loop_costs(code, flow);
  ASSERT_EQ(costs.size(), 2U);
  EXPECT_EQ(costs[0].own.arithmetic(), 2U);
  EXPECT_EQ(costs[0].total.arithmetic(), 3U);
  EXPECT_EQ(costs[0].total.instructions, 5U);
  EXPECT_EQ(costs[1].own.arithmetic(), 1U);
  EXPECT_EQ(hottest_loop(flow, costs), 1U) << "once, but in each round of the outer loop";
}

TEST(Sm61LoopCost, HottestLoop) {
  // An inner loop without arithmetic is not hotter than the outer one that computes.
  const std::vector<Instruction> code = decode(
      assemble({{ffma(0, 1, 2, 3)}, {kNop}, {if_p0(jump(kBranch, 2, 1))}, {if_p0(jump(kBranch, 3, 0))}, {kExit}}));
  const ControlFlow flow = find_control_flow(code);
  EXPECT_EQ(hottest_loop(flow, loop_costs(code, flow)), 0U);
  // Without arithmetic anywhere, instructions count.
  const std::vector<Instruction> plain =
      decode(assemble({{kNop}, {if_p0(jump(kBranch, 1, 0))}, {kNop}, {kNop}, {if_p0(jump(kBranch, 4, 2))}, {kExit}}));
  const ControlFlow two = find_control_flow(plain);
  const auto hottest = hottest_loop(two, loop_costs(plain, two));
  ASSERT_TRUE(hottest.has_value());
  EXPECT_EQ(two.blocks[two.loops[*hottest].header].begin, 2U);
  EXPECT_EQ(hottest_loop({}, {}), std::nullopt);
}

// Figures of the default of matmul as it is stored.
TEST(Sm61LoopCost, StoredMatmul) {
  const KernelCode kernel = read_kernel(testing::stored_cubin("matmul"), "matmul");
  ASSERT_TRUE(kernel.hottest.has_value());
  EXPECT_TRUE(kernel.flow.complete);
  const IssueCost& cost = kernel.costs[*kernel.hottest].own;
  EXPECT_EQ(cost.of(Kind::ffma), 512U);  // 4 × 8 results, 16 deep
  EXPECT_NEAR(cost.arithmetic_share(), 0.826, 0.001);
  EXPECT_NEAR(cost.conflicts_per_arithmetic(), 0.77, 0.005);
  EXPECT_NEAR(cost.arithmetic_per_slot(), 0.533, 0.001);
  EXPECT_EQ(cost.of(Space::shared).loaded_bytes, 16U * (4 + 8) * 4);
  EXPECT_EQ(cost.of(Space::global).loaded_bytes, 2U * 16 * 64 * 4 / 128);  // both tiles, by 128 threads
  EXPECT_EQ(cost.of(Space::shared).stored_bytes, cost.of(Space::global).loaded_bytes);
  EXPECT_EQ(cost.of(Kind::barrier), 1U);
}

}  // namespace
}  // namespace pascaline::sm61
