#include "runtime/device/sm61/heaviest_path.hpp"

#include <gtest/gtest.h>

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
using testing::kNop;
using testing::Word;

KernelCode path_kernel(const std::vector<Word>& words) {
  KernelCode kernel;
  kernel.instructions = decode(assemble(words));
  kernel.flow = find_control_flow(kernel.instructions);
  kernel.costs = loop_costs(kernel.instructions, kernel.flow);
  return kernel;
}

// A loop of a header, three or five FFMA, and an instruction behind both sides; nothing before it, one after it.
KernelCode two_sides() {
  const Word work{ffma(0, 1, 2, 3)};
  return path_kernel({{kNop},
                      {if_p0(jump(kBranch, 1, 6))},
                      work,  // 2 to 4, and over the other side
                      work,
                      work,
                      {jump(kBranch, 5, 11)},
                      work,  // 6 to 10
                      work,
                      work,
                      work,
                      work,
                      {kNop},  // 11
                      {if_p0(jump(kBranch, 12, 0))},
                      {kExit}});
}

TEST(Sm61HeaviestPath, OfTwoSidesTheOneWithMoreInstructions) {
  const KernelCode kernel = two_sides();
  ASSERT_EQ(kernel.flow.loops.size(), 1U);
  EXPECT_EQ(kernel.costs[0].own.arithmetic(), 8U) << "all of the loop";
  const IssueCost cost = cost_of(kernel, heaviest_path(kernel, 0));
  EXPECT_EQ(cost.arithmetic(), 5U);
  EXPECT_EQ(cost.instructions, 2U + 5U + 2U);
}

TEST(Sm61HeaviestPath, LeavesOutWhatIsJumpedOverOnlyIfThatIsLonger) {
  // An `if` without `else` is taken.
  const KernelCode kernel = path_kernel({{kNop},
                                         {if_p0(jump(kBranch, 1, 4))},
                                         {ffma(0, 1, 2, 3)},
                                         {ffma(0, 1, 2, 3)},
                                         {if_p0(jump(kBranch, 4, 0))},
                                         {kExit}});
  EXPECT_EQ(cost_of(kernel, heaviest_path(kernel, 0)).arithmetic(), 2U);
}

TEST(Sm61HeaviestPath, PassesThroughNestedLoopsOnce) {
  const KernelCode kernel = path_kernel({{kNop},              // 0: before
                                         {kNop},              // 1: outer
                                         {ffma(0, 1, 2, 3)},  // 2: inner
                                         {if_p0(jump(kBranch, 3, 2))},
                                         {kNop},
                                         {if_p0(jump(kBranch, 5, 1))},
                                         {kNop},
                                         {kExit}});
  ASSERT_EQ(kernel.flow.loops.size(), 2U);
  EXPECT_EQ(cost_of(kernel, heaviest_path(kernel, 0)).instructions, 5U);
  EXPECT_EQ(cost_of(kernel, heaviest_path(kernel, 1)).instructions, 2U);
  EXPECT_EQ(cost_of(kernel, heaviest_path(kernel, std::nullopt)).instructions, 8U);
  for (const std::uint32_t block : heaviest_path(kernel, 1)) {
    EXPECT_TRUE(is_within(kernel.flow, kernel.flow.blocks[block], 0));
  }
  EXPECT_FALSE(is_within(kernel.flow, kernel.flow.blocks[0], 0));
}

TEST(Sm61HeaviestPath, ASideWithALoopOutweighsALongerOne) {
  std::vector<Word> words{{kNop},
                          {if_p0(jump(kBranch, 1, 5))},
                          {ffma(0, 1, 2, 3)},  // a loop of two
                          {if_p0(jump(kBranch, 3, 2))},
                          {jump(kBranch, 4, 13)}};
  words.resize(13, Word{kNop});
  words.push_back({kExit});
  const KernelCode kernel = path_kernel(words);
  const IssueCost cost = cost_of(kernel, heaviest_path(kernel, std::nullopt));
  EXPECT_EQ(cost.arithmetic(), 1U);
  EXPECT_EQ(cost.instructions, 2U + 2U + 1U + 1U);
}

TEST(Sm61HeaviestPath, OfNothingIsNothing) {
  EXPECT_TRUE(heaviest_path(KernelCode{}, std::nullopt).empty());
  EXPECT_THROW((void)heaviest_path(two_sides(), 1), Error);
}

}  // namespace
}  // namespace pascaline::sm61
