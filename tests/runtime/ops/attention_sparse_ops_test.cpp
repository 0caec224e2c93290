#include <gtest/gtest.h>

#include <cmath>

#include "runtime/ops/attention.hpp"
#include "runtime/ops/attention_sparse.hpp"
#include "runtime/ops/block_choice.hpp"
#include "tests/runtime/ops/op_bench.hpp"
#include "tests/tuner/kernels/naive_reference.hpp"

namespace pascaline::testing {
namespace {

// Heads of 16 columns: 4 of queries, 2 of keys.
struct Sparse {
  const char* name;
  std::int64_t queries;
  std::int64_t keys;
  ops::SparseMask mask;
  std::vector<ops::HeadBlocks> lists = {};  // of each key head, or one for all
};

std::vector<double> as_values(const std::vector<std::int32_t>& entries) { return {entries.begin(), entries.end()}; }

std::vector<std::pair<std::string, std::int64_t>> dimensions_of(const Sparse& of, const ops::BlockLists& lists) {
  return {{"HEADS", 4},
          {"KV_HEADS", 2},
          {"HEAD_DIM", 16},
          {"QUERIES", of.queries},
          {"KEYS", of.keys},
          {"BLOCK", of.mask.block},
          {"LISTS", lists.lists},
          {"WIDTH", lists.width},
          {"WINDOW", of.mask.window},
          {"SINKS", of.mask.sinks},
          {"STRIDE", of.mask.stride}};
}

class SparsePrefillOpsTest : public ::testing::TestWithParam<Sparse> {};

TEST_P(SparsePrefillOpsTest, AgreesWithTheMaskedReference) {
  const Sparse& of = GetParam();
  OpBench bench;
  ops::AttentionSparsePrefill arguments;
  arguments.mask = of.mask;
  arguments.q = bench.input(kFloat, {of.queries, 4, 16}, -2, 2);
  arguments.k = bench.input(kFloat, {of.keys, 2, 16}, -2, 2);
  arguments.v = bench.input(kFloat, {of.keys, 2, 16}, -2, 2);
  arguments.out = bench.output(kFloat, {of.queries, 4, 16});
  ops::BlockLists lists;
  if (!of.lists.empty()) {
    lists = ops::pack_block_lists(of.lists, of.queries, of.keys, of.mask.block);
    arguments.blocks =
        bench.given(ElementType::int32, {lists.lists, lists.rows, lists.width}, as_values(lists.entries));
  }
  ops::run(bench.dispatcher(), arguments);
  const auto expected =
      reference_results({"attention_sparse_prefill", dimensions_of(of, lists), {}}, {bench.initial(arguments.q),
                                                                                     bench.initial(arguments.k),
                                                                                     bench.initial(arguments.v),
                                                                                     {},
                                                                                     {},
                                                                                     bench.initial(arguments.blocks)});
  bench.expect(arguments.out, expected[0], "out");
}

INSTANTIATE_TEST_SUITE_P(
    Masks, SparsePrefillOpsTest,
    ::testing::Values(
        Sparse{"OneKey", 5, 5, {.window = 1}}, Sparse{"Window", 131, 131, {.window = 50}},
        Sparse{"WindowInACache", 67, 300, {.window = 66}}, Sparse{"WiderThanTheContext", 70, 90, {.window = 5000}},
        Sparse{"Sinks", 150, 150, {.window = 20, .sinks = 5}},
        Sparse{"SinksMeetTheWindow", 80, 80, {.window = 40, .sinks = 41}},
        Sparse{"ManySinks", 65, 200, {.window = 1, .sinks = 100}},
        Sparse{"Strided", 100, 300, {.block = 16, .window = 10, .sinks = 16, .stride = 3}},
        Sparse{"StridedWithoutSinks", 64, 333, {.block = 32, .window = 33, .sinks = 0, .stride = 2}},
        Sparse{"StrideOfOneIsDense", 64, 100, {.block = 64, .window = 1, .sinks = 0, .stride = 1}},
        Sparse{"StrideBeyondTheContext", 40, 100, {.block = 64, .window = 8, .sinks = 64, .stride = 9}},
        Sparse{"OneListForAll", 70, 70, {.block = 64}, {{{0}, {0, 1}}}},
        Sparse{"WithoutTheDiagonal", 128, 256, {.block = 64}, {{{0, 1}, {0, 3}}}},
        Sparse{"ListsOfHeads", 130, 230, {.block = 64}, {{{0, 2}, {1}, {0, 1, 2, 3}}, {{1}, {0, 1, 2}, {2, 3}}}},
        Sparse{"SmallBlocks", 40, 90, {.block = 16}, {{{0, 2, 3}, {1, 4}, {0, 1, 2, 3, 4, 5}}, {{3}, {3, 4}, {5}}}},
        Sparse{"BlocksOf32", 33, 100, {.block = 32}, {{{0, 2}, {1, 3}}}},
        Sparse{"BlocksOf128", 129, 500, {.block = 128}, {{{0, 1, 2, 3}, {2, 3}}, {{2}, {0, 3}}}}),
    [](const auto& tested) { return tested.param.name; });

// Where the window holds everything, the tiles are those of dense attention.
TEST(SparseAttentionOpsTest, AWindowAsWideAsTheContextGivesTheDenseResultToTheBit) {
  for (const ElementType type : {kFloat, kHalf}) {
    OpBench bench;
    const TensorView q = bench.input(type, {70, 4, 16}, -2, 2);
    const TensorView k = bench.input(type, {201, 2, 16}, -2, 2);
    const TensorView v = bench.input(type, {201, 2, 16}, -2, 2);
    const TensorView dense = bench.output(type, {70, 4, 16});
    const TensorView sparse = bench.output(type, {70, 4, 16});
    ops::run(bench.dispatcher(), ops::AttentionPrefill{.q = q, .k = k, .v = v, .out = dense});
    ops::run(bench.dispatcher(),
             ops::AttentionSparsePrefill{.q = q, .k = k, .v = v, .out = sparse, .mask = {.window = 201}});
    EXPECT_EQ(bench.values(dense), bench.values(sparse));

    const TensorView query(q.data, type, {4, 16});
    const TensorView length = bench.given(ElementType::int32, {1}, {190});
    const TensorView dense_token = bench.output(type, {4, 16});
    const TensorView sparse_token = bench.output(type, {4, 16});
    ops::run(bench.dispatcher(),
             ops::AttentionDecode{.q = query, .k = k, .v = v, .length = length, .out = dense_token});
    ops::run(bench.dispatcher(),
             ops::AttentionSparseDecode{
                 .q = query, .k = k, .v = v, .length = length, .out = sparse_token, .mask = {.window = 201}});
    EXPECT_EQ(bench.values(dense_token), bench.values(sparse_token));
  }
}

// At many lengths of the context, which the kernel reads from memory.
TEST(SparseAttentionOpsTest, ATokenSeesWhatTheMaskLetsThrough) {
  const Sparse kinds[] = {{"window", 1, 201, {.window = 30}},
                          {"sinks", 1, 201, {.window = 30, .sinks = 7}},
                          {"strided", 1, 201, {.block = 16, .window = 20, .sinks = 16, .stride = 3}}};
  for (const Sparse& of : kinds) {
    for (const double length : {0.0, 1.0, 29.0, 31.0, 37.0, 40.0, 150.0, 201.0, 300.0}) {
      SCOPED_TRACE(std::string(of.name) + " " + std::to_string(length));
      OpBench bench;
      ops::AttentionSparseDecode token;
      token.mask = of.mask;
      token.q = bench.input(kHalf, {4, 16}, -2, 2);
      token.k = bench.input(kHalf, {201, 2, 16}, -2, 2);
      token.v = bench.input(kHalf, {201, 2, 16}, -2, 2);
      token.length = bench.given(ElementType::int32, {1}, {length});
      token.out = bench.output(kHalf, {4, 16});
      ops::run(bench.dispatcher(), token);
      const auto expected = reference_results(
          {"attention_sparse_decode", dimensions_of(of, {}), {}},
          {bench.initial(token.q), bench.initial(token.k), bench.initial(token.v), {}, {}, {length}, {}});
      bench.expect(token.out, expected[0], "out");
    }
  }
}

TEST(SparseAttentionOpsTest, ATokenSeesTheBlocksOfItsHeadsList) {
  const std::vector<double> entries{0, 3, 9, 12, 1, 2, -1, -1};  // of two heads; blocks of 16
  for (const double length : {5.0, 40.0, 160.0, 201.0}) {
    SCOPED_TRACE(length);
    OpBench bench;
    ops::AttentionSparseDecode token;
    token.mask = {.block = 16};
    token.q = bench.input(kFloat, {4, 16}, -2, 2);
    token.k = bench.input(kFloat, {201, 2, 16}, -2, 2);
    token.v = bench.input(kFloat, {201, 2, 16}, -2, 2);
    token.length = bench.given(ElementType::int32, {1}, {length});
    token.blocks = bench.given(ElementType::int32, {2, 4}, entries);
    token.out = bench.output(kFloat, {4, 16});
    ops::run(bench.dispatcher(), token);
    ops::BlockLists lists;
    lists.lists = 2;
    lists.width = 4;
    const auto expected = reference_results(
        {"attention_sparse_decode", dimensions_of({"", 1, 201, token.mask}, lists), {}},
        {bench.initial(token.q), bench.initial(token.k), bench.initial(token.v), {}, {}, {length}, entries});
    bench.expect(token.out, expected[0], "out");
  }
}

// With equal scores, such as are no numbers, and at lengths that the kernel reads from memory.
TEST(SparseAttentionOpsTest, BlocksAreChosenByTheirScores) {
  const double none = std::nan("");
  const std::vector<double> scores{9, 1, none, 5, 5, -2, 5, 7, 0, 0};
  const auto chosen = [&](double length, std::int64_t part, std::int64_t width) {
    OpBench bench;
    const TensorView blocks = bench.output(ElementType::int32, {1, 1, width});
    ops::run(bench.dispatcher(), ops::ChooseBlocks{.scores = bench.given(kFloat, {1, 1, 10}, scores),
                                                   .length = bench.given(ElementType::int32, {1}, {length}),
                                                   .blocks = blocks,
                                                   .queries = 1,
                                                   .keys = 160,
                                                   .block = 16,
                                                   .part = part});
    return bench.values(blocks);
  };
  using Values = std::vector<double>;
  EXPECT_EQ(chosen(160, 500'000, 5), (Values{0, 3, 4, 7, 9})) << "the first of equal scores";
  EXPECT_EQ(chosen(160, 900'000, 9), (Values{0, 1, 3, 4, 5, 6, 7, 8, 9})) << "what is no number comes last";
  EXPECT_EQ(chosen(160, 1'000'000, 4), (Values{0, 3, 7, 9})) << "as many as there is room for";
  EXPECT_EQ(chosen(96, 500'000, 5), (Values{0, 3, 5, -1, -1})) << "a half of six";
  EXPECT_EQ(chosen(16, 500'000, 3), (Values{0, -1, -1}));
  EXPECT_EQ(chosen(17, 1, 3), (Values{0, 1, -1})) << "always the first and its own";
  EXPECT_EQ(chosen(-7, 1, 3), (Values{0, -1, -1})) << "held to one query";
}

// A cache that fills up row by row, and again from a row before.
TEST(SparseAttentionOpsTest, MeansFollowTheCache) {
  OpBench bench;
  const TensorView k = bench.input(kHalf, {50, 2, 16}, -2, 2);
  const TensorView means = bench.given(kFloat, {4, 2, 16}, std::vector<double>(128, 77));
  const TensorView length = bench.given(ElementType::int32, {1}, {0});
  const auto pool = [&](std::int32_t rows, std::int64_t added) {
    *static_cast<std::int32_t*>(length.data) = rows;  // the device's memory is the host's
    ops::run(bench.dispatcher(),
             ops::PoolBlocks{.k = k, .length = length, .means = means, .block = 16, .added = added});
    return bench.values(means);
  };
  const auto mean_of = [&](std::size_t block, std::size_t column) {
    double sum = 0;
    for (std::size_t row = 0; row < 16; ++row) {
      sum += bench.initial(k)[(block * 16 + row) * 32 + column];
    }
    return sum / 16;
  };
  EXPECT_EQ(pool(15, 15)[5], 77) << "no block is full";
  std::vector<double> held = pool(16, 1);
  EXPECT_NEAR(held[5], mean_of(0, 5), 1e-5);
  EXPECT_EQ(held[32 + 5], 77);
  held = pool(50, 34);
  EXPECT_NEAR(held[32 + 31], mean_of(1, 31), 1e-5);
  EXPECT_NEAR(held[64 + 7], mean_of(2, 7), 1e-5);
  EXPECT_EQ(held[96 + 7], 77) << "of the last block two rows are there";
}

// What such lists give is not defined, but it comes from the tensors, as the guards of memory and the numbers tell.
TEST(SparseAttentionOpsTest, ListsThatMakeNoSenseLeadOutOfNoTensor) {
  const std::vector<std::vector<double>> kinds{{7, 3, 3, 0},   {2147483647, 0, 1, 2}, {0, 2147483647, 1, 1},
                                               {0, 1, 4, 100}, {6, 6, 6, 6},          {-5, -2147483648.0, 0, 1}};
  for (const std::vector<double>& entries : kinds) {
    OpBench bench;
    const TensorView q = bench.input(kFloat, {30, 4, 16});
    const TensorView k = bench.input(kFloat, {100, 2, 16});
    const TensorView v = bench.input(kFloat, {100, 2, 16});
    const TensorView out = bench.output(kFloat, {30, 4, 16});
    std::vector<double> twice = entries;
    twice.insert(twice.end(), entries.begin(), entries.end());
    ops::run(bench.dispatcher(),
             ops::AttentionSparsePrefill{.q = q,
                                         .k = k,
                                         .v = v,
                                         .out = out,
                                         .blocks = bench.given(ElementType::int32, {1, 2, 4}, twice),
                                         .mask = {.block = 16}});
    const TensorView query(q.data, kFloat, {4, 16});
    const TensorView token = bench.output(kFloat, {4, 16});
    ops::run(bench.dispatcher(), ops::AttentionSparseDecode{.q = query,
                                                            .k = k,
                                                            .v = v,
                                                            .length = bench.given(ElementType::int32, {1}, {100}),
                                                            .out = token,
                                                            .blocks = bench.given(ElementType::int32, {2, 4}, twice),
                                                            .mask = {.block = 16}});
    for (const TensorView& result : {out, token}) {
      const std::vector<double> values = bench.values(result);
      for (const double value : values) {
        ASSERT_LE(std::abs(value), 1) << "no mean of values";
      }
      bench.expect(result, values, "result");
    }
  }
}

}  // namespace
}  // namespace pascaline::testing
