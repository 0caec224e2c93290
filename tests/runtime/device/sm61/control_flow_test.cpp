#include "runtime/device/sm61/control_flow.hpp"

#include <gtest/gtest.h>

#include "tests/runtime/device/sm61/code_exercise.hpp"
#include "tests/runtime/device/sm61/code_fixture.hpp"

namespace pascaline::sm61 {
namespace {

using testing::assemble;
using testing::if_p0;
using testing::jump;
using testing::kBranch;
using testing::kBreak;
using testing::kCall;
using testing::kExit;
using testing::kNop;
using testing::kPushBreak;
using testing::kPushSync;
using testing::kSync;
using testing::Word;

ControlFlow flow_of(const std::vector<Word>& words) { return find_control_flow(decode(assemble(words))); }

// The innermost loop of an instruction; -1 for none.
int loop_at(const ControlFlow& flow, std::size_t instruction) {
  for (const Block& block : flow.blocks) {
    if (block.begin <= instruction && instruction < block.end) {
      return block.loop;
    }
  }
  return -2;
}

TEST(Sm61ControlFlow, StraightCodeHasNoLoop) {
  const ControlFlow flow = flow_of({{kNop}, {kNop}, {kExit}});
  EXPECT_TRUE(flow.loops.empty());
  EXPECT_TRUE(flow.complete);
  EXPECT_TRUE(find_control_flow({}).blocks.empty());
}

TEST(Sm61ControlFlow, NestedLoops) {
  const ControlFlow flow = flow_of({{kNop},
                                    {kNop},  // 1: outer header
                                    {kNop},  // 2: first inner loop
                                    {if_p0(jump(kBranch, 3, 2))},
                                    {kNop},
                                    {kNop},  // 5: second inner loop
                                    {if_p0(jump(kBranch, 6, 5))},
                                    {if_p0(jump(kBranch, 7, 1))},
                                    {kNop},
                                    {if_p0(jump(kBranch, 9, 9))},  // 9: alone
                                    {kExit},
                                    {jump(kBranch, 11, 11)}});  // what the compiler closes every kernel with
  ASSERT_EQ(flow.loops.size(), 4U);
  EXPECT_TRUE(flow.complete);
  EXPECT_EQ(loop_at(flow, 0), -1);
  const int outer = loop_at(flow, 1);
  ASSERT_GE(outer, 0);
  EXPECT_EQ(loop_at(flow, 4), outer);
  EXPECT_EQ(loop_at(flow, 7), outer);
  const int first = loop_at(flow, 2);
  const int second = loop_at(flow, 5);
  const int last = loop_at(flow, 9);
  EXPECT_NE(first, second);
  for (const int inner : {first, second}) {
    const Loop& loop = flow.loops[static_cast<std::size_t>(inner)];
    EXPECT_EQ(loop.parent, outer);
    EXPECT_EQ(loop.depth, 2U);
    EXPECT_TRUE(loop.innermost);
    EXPECT_FALSE(loop.several_entries);
  }
  EXPECT_FALSE(flow.loops[static_cast<std::size_t>(outer)].innermost);
  EXPECT_EQ(flow.loops[static_cast<std::size_t>(last)].depth, 1U);
  EXPECT_EQ(loop_at(flow, 8), -1);
  EXPECT_EQ(loop_at(flow, 11), -1) << "never reached";
}

TEST(Sm61ControlFlow, TwoBranchesBackToOneHeaderAreOneLoop) {
  const ControlFlow flow =
      flow_of({{kNop}, {if_p0(jump(kBranch, 1, 0))}, {kNop}, {if_p0(jump(kBranch, 3, 0))}, {kExit}});
  ASSERT_EQ(flow.loops.size(), 1U);
  EXPECT_EQ(loop_at(flow, 3), 0);
}

// A loop whose threads leave it one by one with BRK, with a divergent piece that SSY and SYNC join again.
TEST(Sm61ControlFlow, PushedTargetsAreFollowed) {
  const ControlFlow flow = flow_of({{jump(kPushBreak, 0, 8)},
                                    {jump(kPushSync, 1, 5)},  // loop
                                    {if_p0(jump(kBranch, 2, 4))},
                                    {kSync},
                                    {kSync},
                                    {if_p0(kBreak)},  // 5: after SYNC
                                    {kNop},
                                    {jump(kBranch, 7, 1)},
                                    {kExit}});
  ASSERT_EQ(flow.loops.size(), 1U);
  EXPECT_TRUE(flow.complete);
  for (std::size_t i = 1; i < 8; ++i) {
    EXPECT_EQ(loop_at(flow, i), 0) << i;
  }
  EXPECT_EQ(loop_at(flow, 0), -1);
  EXPECT_EQ(loop_at(flow, 8), -1);
  for (const Block& block : flow.blocks) {
    EXPECT_EQ(block.reached, block.begin < 9);
  }
}

// BRK takes what was pushed after its PBK along.
TEST(Sm61ControlFlow, BreakLeavesOpenSyncs) {
  const ControlFlow flow = flow_of(
      {{jump(kPushSync, 0, 6)}, {jump(kPushBreak, 1, 4)}, {jump(kPushSync, 2, 5)}, {kBreak}, {kSync}, {kNop}, {kExit}});
  EXPECT_TRUE(flow.complete);
  EXPECT_FALSE(flow.blocks[static_cast<std::size_t>(1 + loop_at(flow, 0))].reached && loop_at(flow, 5) != -1);
  bool skipped = false;
  for (const Block& block : flow.blocks) {
    skipped = skipped || (block.begin == 5 && !block.reached);
  }
  EXPECT_TRUE(skipped) << "SYNC continues at the first SSY's target, not at the second's";
}

TEST(Sm61ControlFlow, CalledFunctionsAreReadOnTheirOwn) {
  const ControlFlow flow = flow_of({{kNop},
                                    {jump(kCall, 1, 4)},
                                    {if_p0(jump(kBranch, 2, 0))},
                                    {kExit},
                                    {kNop},  // 4: the function
                                    {if_p0(jump(kBranch, 5, 4))},
                                    {0xe32000000007000f}});  // RET
  ASSERT_EQ(flow.loops.size(), 2U);
  const Loop& called = flow.loops[static_cast<std::size_t>(loop_at(flow, 4))];
  EXPECT_EQ(called.depth, 1U) << "not within the loop that calls it";
  EXPECT_NE(loop_at(flow, 0), loop_at(flow, 4));
}

TEST(Sm61ControlFlow, LoopsWithTwoEntriesAreMarked) {
  const ControlFlow flow =
      flow_of({{if_p0(jump(kBranch, 0, 3))}, {kNop}, {kNop}, {kNop}, {if_p0(jump(kBranch, 4, 2))}, {kExit}});
  // 2 and 3 are both entered from outside; depth-first search finds one of them first.
  ASSERT_EQ(flow.loops.size(), 1U);
  EXPECT_TRUE(flow.loops[0].several_entries);
}

TEST(Sm61ControlFlow, WhatCannotBeFollowedIsSaid) {
  EXPECT_FALSE(flow_of({{kSync}}).complete);
  EXPECT_FALSE(flow_of({{kBreak}}).complete);
  EXPECT_FALSE(flow_of({{0xe25000000007000f}, {kExit}}).complete);
  EXPECT_FALSE(flow_of({{jump(kBranch, 0, 9)}, {kExit}}).complete);             // past the end
  EXPECT_FALSE(flow_of({{jump(kBranch, 0, 0) ^ 0x100000}, {kExit}}).complete);  // between two words
  EXPECT_FALSE(flow_of({{kNop}}).complete);                                     // runs past the end
}

// Code made to be slow: every block branches far back, or is a loop inside the one before it.
TEST(Sm61ControlFlow, DeepAndTangledCodeTakesLittleTime) {
  constexpr std::size_t kLoops = 30000;
  std::vector<Word> nested(kLoops, Word{kNop});
  for (std::size_t i = 0; i < kLoops; ++i) {
    nested.push_back({if_p0(jump(kBranch, kLoops + i, kLoops - 1 - i))});
  }
  nested.push_back({kExit});
  const ControlFlow flow = flow_of(nested);
  ASSERT_EQ(flow.loops.size(), kLoops);
  EXPECT_EQ(flow.loops.back().depth, kLoops);
  std::vector<Word> pushed(kLoops, Word{jump(kPushBreak, 0, 1)});
  pushed.insert(pushed.begin(), {jump(kPushSync, 0, 0)});
  for (std::size_t i = 0; i < kLoops; ++i) {
    pushed.push_back({if_p0(kSync)});
  }
  testing::exercise_code(assemble(pushed));
  std::vector<Word> tangled;
  for (std::size_t i = 0; i < 2 * kLoops; ++i) {
    tangled.push_back({if_p0(jump(kBranch, i, (i * 7919 + 13) % (2 * kLoops)))});
  }
  testing::exercise_code(assemble(tangled));
}

}  // namespace
}  // namespace pascaline::sm61
