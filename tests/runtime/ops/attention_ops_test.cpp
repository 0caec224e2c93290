#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "runtime/ops/attention.hpp"
#include "runtime/ops/attention_qkv.hpp"
#include "tests/runtime/ops/op_bench.hpp"
#include "tests/tuner/kernels/naive_reference.hpp"

namespace pascaline::testing {
namespace {

// Heads of 16 columns: 2 of queries, 1 of keys.
struct Prefill {
  std::int64_t queries;
  std::int64_t keys;
  bool causal = true;
  std::vector<double> starts = {};  // of segments
  std::int64_t row_stride = 0;      // of q, k and v
  ElementType storage = kFloat;     // and the cache's
};

class PrefillOpsTest : public ::testing::TestWithParam<Prefill> {};

TEST_P(PrefillOpsTest, AgreesWithTheReference) {
  const Prefill& of = GetParam();
  OpBench bench;
  ops::AttentionPrefill arguments;
  arguments.causal = of.causal;
  arguments.q = bench.input(of.storage, {of.queries, 2, 16}, -2, 2, of.row_stride);
  arguments.k = bench.input(of.storage, {of.keys, 1, 16}, -2, 2, of.row_stride);
  arguments.v = bench.input(of.storage, {of.keys, 1, 16}, -2, 2, of.row_stride);
  arguments.out = bench.output(of.storage, {of.queries, 2, 16});
  std::int64_t segments = 1;
  if (!of.starts.empty()) {
    segments = static_cast<std::int64_t>(of.starts.size()) - 1;
    arguments.segment_starts = bench.given(ElementType::int32, {segments + 1}, of.starts);
  }
  ops::run(bench.dispatcher(), arguments);
  const auto expected = reference_results({"attention_prefill",
                                           {{"HEADS", 2},
                                            {"KV_HEADS", 1},
                                            {"HEAD_DIM", 16},
                                            {"QUERIES", of.queries},
                                            {"KEYS", of.keys},
                                            {"CAUSAL", of.causal ? 1 : 0},
                                            {"SEGMENTS", segments},
                                            {"Q_STRIDE", of.row_stride != 0 ? of.row_stride : 32},
                                            {"KV_STRIDE", of.row_stride != 0 ? of.row_stride : 16}},
                                           {}},
                                          {bench.initial(arguments.q),
                                           bench.initial(arguments.k),
                                           bench.initial(arguments.v),
                                           {},
                                           {},
                                           bench.initial(arguments.segment_starts)});
  bench.expect(arguments.out, expected[0], "out");
}

INSTANTIATE_TEST_SUITE_P(Shapes, PrefillOpsTest,
                         ::testing::Values(Prefill{1, 1}, Prefill{67, 131}, Prefill{5, 3}, Prefill{13, 29, false},
                                           Prefill{31, 31, false, {0, 31}}, Prefill{70, 70, false, {0, 1, 1, 66, 70}},
                                           Prefill{19, 19, true, {}, 64, kHalf}, Prefill{7, 11, true, {}, 41, kFloat}));

// q, k and v as they lie in the rows of one projection.
TEST(AttentionOpsHostTest, PartsOfAProjectionNeedNoCopy) {
  OpBench bench;
  const TensorView qkv = bench.input(kFloat, {6, 64});
  const auto part = [&](std::int64_t heads, std::int64_t column) {
    return TensorView(static_cast<float*>(qkv.data) + column, kFloat, {6, heads, 16}).with_row_stride(64);
  };
  const TensorView out = bench.output(kFloat, {6, 2, 16});
  ops::run(
      bench.dispatcher(),
      ops::AttentionPrefill{.q = part(2, 0), .k = part(1, 32), .v = part(1, 48), .out = out, .segment_starts = {}});
  std::vector<std::vector<double>> inputs(6);
  const std::size_t columns[] = {0, 32, 48};
  for (std::size_t i = 0; i < 3; ++i) {
    inputs[i].assign(bench.initial(qkv).begin() + static_cast<std::ptrdiff_t>(columns[i]), bench.initial(qkv).end());
  }
  const auto expected = reference_results({"attention_prefill",
                                           {{"HEADS", 2},
                                            {"KV_HEADS", 1},
                                            {"HEAD_DIM", 16},
                                            {"QUERIES", 6},
                                            {"KEYS", 6},
                                            {"CAUSAL", 1},
                                            {"SEGMENTS", 1},
                                            {"Q_STRIDE", 64},
                                            {"KV_STRIDE", 64}},
                                           {}},
                                          inputs);
  bench.expect(out, expected[0], "out");
}

// From the projection of a token to attention: 4 heads of queries, 2 of keys, 16 columns each.
TEST(AttentionOpsHostTest, ATokenGoesFromItsProjectionIntoTheCacheAndToAttention) {
  for (const ElementType cache : {kFloat, kHalf}) {
    for (const double length : {0.0, 1.0, 2.0, 77.0, 201.0, 300.0}) {
      SCOPED_TRACE(length);
      OpBench bench;
      ops::AttentionDecodeQkv of;
      of.qkv = bench.input(kFloat, {8, 16}, -2, 2);
      of.q_weight = bench.input(kFloat, {16}, 0.5, 2);
      of.k_weight = bench.input(kFloat, {16}, 0.5, 2);
      of.cosine = bench.input(kFloat, {9, 8}, -1, 1);
      of.sine = bench.input(kFloat, {9, 8}, -1, 1);
      of.positions = bench.given(ElementType::int32, {3, 1}, {7, 3, 40});
      of.length = bench.given(ElementType::int32, {1}, {length});
      of.k_cache = bench.input(cache, {201, 2, 16}, -2, 2);
      of.v_cache = bench.input(cache, {201, 2, 16}, -2, 2);
      of.out = bench.output(kFloat, {4, 16});
      of.section_h = 2;
      of.section_w = 3;
      ops::run(bench.dispatcher(), of);
      const auto expected = reference_results({"attention_decode_qkv",
                                               {{"HEADS", 4},
                                                {"KV_HEADS", 2},
                                                {"HEAD_DIM", 16},
                                                {"KEYS", 201},
                                                {"POSITIONS", 9},
                                                {"SECTION_H", 2},
                                                {"SECTION_W", 3},
                                                {"NORM", 1},
                                                {"EPSILON", 1000}},
                                               {}},
                                              {bench.initial(of.qkv),
                                               bench.initial(of.q_weight),
                                               bench.initial(of.k_weight),
                                               bench.initial(of.cosine),
                                               bench.initial(of.sine),
                                               {7, 3, 40},
                                               {length},
                                               bench.initial(of.k_cache),
                                               bench.initial(of.v_cache),
                                               {},
                                               {}});
      bench.expect(of.k_cache, expected[0], "k_cache");
      bench.expect(of.v_cache, expected[1], "v_cache");
      bench.expect(of.out, expected[4], "out");
      // Only the token's own row has changed.
      const std::size_t row = length == 0 ? 6432 : static_cast<std::size_t>(std::min(length, 201.0) - 1) * 32;
      const std::vector<double> keys = bench.values(of.k_cache);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (i < row || i >= row + 32) {
          ASSERT_EQ(keys[i], bench.initial(of.k_cache)[i]) << i;
        }
      }
    }
  }
}

TEST(AttentionOpsHostTest, DecodeReadsTheLengthFromTheDevice) {
  for (const ElementType type : {kFloat, kHalf}) {
    OpBench bench;
    for (const double length : {0.0, 1.0, 77.0, 201.0}) {
      ops::AttentionDecode arguments;
      arguments.q = bench.input(type, {4, 16}, -2, 2);
      arguments.k = bench.input(type, {201, 2, 16}, -2, 2, 40);
      arguments.v = bench.input(type, {201, 2, 16}, -2, 2, 40);
      arguments.length = bench.given(ElementType::int32, {1}, {length});
      arguments.out = bench.output(type, {4, 16});
      ops::run(bench.dispatcher(), arguments);
      const auto expected = reference_results(
          {"attention_decode", {{"HEADS", 4}, {"KV_HEADS", 2}, {"HEAD_DIM", 16}, {"KEYS", 201}, {"KV_STRIDE", 40}}, {}},
          {bench.initial(arguments.q), bench.initial(arguments.k), bench.initial(arguments.v), {}, {}, {length}});
      bench.expect(arguments.out, expected[0], "out");
    }
  }
}

TEST(AttentionOpsHostTest, DecodeRoundsItsResult) {
  OpBench bench;
  for (const double length : {0.0, 1.0, 77.0, 201.0}) {
    ops::AttentionDecode arguments;
    arguments.q = bench.input(kFloat, {6, 32}, -2, 2);
    arguments.k = bench.input(kFloat, {201, 2, 32}, -2, 2);
    arguments.v = bench.input(kFloat, {201, 2, 32}, -2, 2);
    arguments.length = bench.given(ElementType::int32, {1}, {length});
    arguments.out = bench.output(ElementType::int8, {6, 32});
    arguments.scales = bench.output(kFloat, {6, 1});
    ops::run(bench.dispatcher(), arguments);
    const auto expected = reference_results(
        {"attention_decode",
         {{"HEADS", 6}, {"KV_HEADS", 2}, {"HEAD_DIM", 32}, {"KEYS", 201}, {"KV_STRIDE", 64}},
         {{"OUTPUT", ElementType::int8}}},
        {bench.initial(arguments.q), bench.initial(arguments.k), bench.initial(arguments.v), {}, {}, {length}});
    bench.expect(arguments.scales, expected[1], "scales");
    const std::vector<double> integers = bench.values(arguments.out);
    for (std::size_t i = 0; i < integers.size(); ++i) {
      ASSERT_NEAR(integers[i], expected[0][i], 0.501) << length << " keys, element " << i;
    }
  }
}

}  // namespace
}  // namespace pascaline::testing
