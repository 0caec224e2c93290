#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/ops/elementwise.hpp"
#include "runtime/ops/gather.hpp"
#include "runtime/ops/norm.hpp"
#include "runtime/ops/position_embedding.hpp"
#include "runtime/ops/rope.hpp"
#include "runtime/ops/transpose.hpp"
#include "tests/runtime/ops/op_bench.hpp"
#include "tests/tuner/kernels/naive_reference.hpp"

namespace pascaline::testing {
namespace {

// Element types of what goes in and of what comes out.
class RowOpsTest : public ::testing::TestWithParam<std::pair<ElementType, ElementType>> {
 protected:
  const ElementType in_ = GetParam().first;
  const ElementType out_ = GetParam().second;
  OpBench bench_;

  void expect_heads(bool is_normed, ops::QkvParts parts = ops::QkvParts::joined);
};

TEST_P(RowOpsTest, Rmsnorm) {
  for (const auto& [rows, width] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 67}, {5, 2051}}) {
    const TensorView x = bench_.input(in_, {rows, width});
    const TensorView weight = bench_.input(kFloat, {width});
    const TensorView y = bench_.output(out_, {rows, width});
    ops::run(bench_.dispatcher(), ops::Rmsnorm{.x = x, .weight = weight, .y = y, .epsilon = {20'000'000}});
    const auto expected = reference_results(
        {"rmsnorm", {{"ROWS", rows}, {"WIDTH", width}, {"RESIDUAL", 0}, {"BY_ROW", 0}, {"EPSILON", 20'000'000}}, {}},
        {bench_.initial(x), bench_.initial(weight), {}});
    bench_.expect(y, expected[0], "y");
  }
}

TEST_P(RowOpsTest, LayernormWithAResidual) {
  const TensorView x = bench_.input(in_, {3, 67});
  const TensorView weight = bench_.input(kFloat, {67});
  const TensorView bias = bench_.input(kFloat, {67});
  const TensorView y = bench_.output(out_, {3, 67});
  const TensorView residual = bench_.input(in_, {3, 67});
  ops::run(bench_.dispatcher(), ops::Layernorm{x, weight, bias, y, residual});
  const auto expected =
      reference_results({"layernorm", {{"ROWS", 3}, {"WIDTH", 67}, {"RESIDUAL", 1}, {"BY_ROW", 0}}, {}},
                        {bench_.initial(x), bench_.initial(weight), bench_.initial(bias), bench_.initial(residual)});
  bench_.expect(y, expected[0], "y");
  bench_.expect(residual, expected[2], "residual");
}

TEST_P(RowOpsTest, Gather) {
  const TensorView table = bench_.input(in_, {7, 33});
  const TensorView indices = bench_.given(kInt, {5}, {6, 0, -1, 7, 3});
  const TensorView y = bench_.output(out_, {5, 33});
  ops::run(bench_.dispatcher(), ops::Gather{table, indices, y});
  const auto expected = reference_results({"gather", {{"TOKENS", 5}, {"WIDTH", 33}, {"VOCABULARY", 7}}, {}},
                                          {bench_.initial(table), bench_.initial(indices)});
  bench_.expect(y, expected[0], "y");
}

TEST_P(RowOpsTest, Convert) {
  const TensorView x = bench_.input(in_, {7, 3, 5});
  const TensorView y = bench_.output(out_, {7, 3, 5});
  ops::run(bench_.dispatcher(), ops::Convert{x, y});
  bench_.expect(y, bench_.initial(x), "y");
}

TEST_P(RowOpsTest, GatedActivations) {
  const TensorView gate = bench_.input(in_, {1003}, -4, 4);
  const TensorView factor = bench_.input(in_, {1003});
  const auto expect_formula = [&](const auto& op, std::int64_t number) {
    ops::run(bench_.dispatcher(), op);
    const auto expected = reference_results({"elementwise", {{"COUNT", 1003}, {"OPERATION", number}}, {}},
                                            {bench_.initial(gate), bench_.initial(factor)});
    bench_.expect(op.y, expected[0], op.kName);
  };
  expect_formula(ops::SiluMultiply{gate, factor, bench_.output(out_, {1003})}, 2);
  expect_formula(ops::GeluMultiply{gate, factor, bench_.output(out_, {1003})}, 5);
}

// Normalised, and only turned.
TEST_P(RowOpsTest, QkNormRope) {
  expect_heads(true);
  expect_heads(false);
}

// As products with weights of several types give them.
TEST_P(RowOpsTest, QkNormRopeOfParts) {
  for (const auto parts : {ops::QkvParts::queries_apart, ops::QkvParts::values_apart, ops::QkvParts::all_apart}) {
    expect_heads(true, parts);
  }
}

void RowOpsTest::expect_heads(bool is_normed, ops::QkvParts parts) {
  const bool is_joined = parts == ops::QkvParts::joined;
  ops::QkNormRope of;
  of.qkv = is_joined ? bench_.input(in_, {5, 4, 18}, -1, 1, 77) : bench_.input(in_, {5, 4, 18});
  of.parts = parts;
  if (is_normed) {
    of.q_weight = bench_.input(kFloat, {18});
    of.k_weight = bench_.input(kFloat, {18});
    of.epsilon = {30'000'000};
  }
  of.cosine = bench_.input(kFloat, {9, 9});
  of.sine = bench_.input(kFloat, {9, 9});
  of.positions = bench_.given(kInt, {3, 5}, {0, 1, 2, 8, 11, 0, 4, 2, 8, 3, 0, 1, 2, 5, -1});
  of.slots = bench_.given(kInt, {5}, {3, 0, -1, 4, 1});
  of.k_cache = bench_.input(out_, {4, 1, 18});
  of.v_cache = bench_.input(out_, {4, 1, 18});
  of.q = bench_.output(in_, {5, 2, 18});
  of.section_h = 3;
  of.section_w = 2;
  ops::run(bench_.dispatcher(), of);
  const auto expected = reference_results({"qk_norm_rope",
                                           {{"TOKENS", 5},
                                            {"HEADS", 2},
                                            {"KV_HEADS", 1},
                                            {"HEAD_DIM", 18},
                                            {"POSITIONS", 9},
                                            {"CACHE_ROWS", 4},
                                            {"SECTION_H", 3},
                                            {"SECTION_W", 2},
                                            {"QKV_STRIDE", is_joined ? 77 : 72},
                                            {"NORM", is_normed ? 1 : 0},
                                            {"EPSILON", of.epsilon.nano},
                                            {"PARTS", static_cast<std::int64_t>(parts)}},
                                           {}},
                                          {bench_.initial(of.qkv),
                                           is_normed ? bench_.initial(of.q_weight) : std::vector<double>(),
                                           is_normed ? bench_.initial(of.k_weight) : std::vector<double>(),
                                           bench_.initial(of.cosine),
                                           bench_.initial(of.sine),
                                           bench_.initial(of.positions),
                                           bench_.initial(of.slots),
                                           bench_.initial(of.k_cache),
                                           bench_.initial(of.v_cache),
                                           {},
                                           {}});
  bench_.expect(of.k_cache, expected[0], "k_cache");
  bench_.expect(of.v_cache, expected[1], "v_cache");
  bench_.expect(of.q, expected[4], "q");
}

INSTANTIATE_TEST_SUITE_P(Types, RowOpsTest,
                         ::testing::Values(std::pair(kFloat, kFloat), std::pair(kHalf, kHalf),
                                           std::pair(kFloat, kHalf)));

// With one element type; out of place, but for what is meant to be in place.
class PlainOpsTest : public ::testing::TestWithParam<ElementType> {
 protected:
  const ElementType type_ = GetParam();
  OpBench bench_;
};

TEST_P(PlainOpsTest, Softmax) {
  const TensorView x = bench_.input(type_, {5, 61}, -4, 4);
  const TensorView y = bench_.output(type_, {5, 61});
  ops::run(bench_.dispatcher(), ops::Softmax{x, y});
  const auto expected = reference_results({"softmax", {{"ROWS", 5}, {"WIDTH", 61}}, {}}, {bench_.initial(x)});
  bench_.expect(y, expected[0], "y");
}

TEST_P(PlainOpsTest, Transpose) {
  const TensorView x = bench_.input(type_, {65, 37});
  const TensorView y = bench_.output(type_, {37, 65});
  ops::run(bench_.dispatcher(), ops::Transpose{x, y});
  const auto expected = reference_results({"transpose", {{"ROWS", 65}, {"COLUMNS", 37}}, {}}, {bench_.initial(x)});
  bench_.expect(y, expected[0], "y");
}

TEST_P(PlainOpsTest, ActivationsAndSumsInPlace) {
  const auto expect_gelu = [&](const TensorView& x, std::int64_t number) {
    const auto expected =
        reference_results({"elementwise", {{"COUNT", 129}, {"OPERATION", number}}, {}}, {bench_.initial(x), {}});
    bench_.expect(x, expected[0], "gelu");
  };
  const TensorView by_tanh = bench_.input(type_, {129}, -4, 4);
  ops::run(bench_.dispatcher(), ops::GeluTanh{by_tanh, by_tanh});
  expect_gelu(by_tanh, 3);
  const TensorView by_erf = bench_.input(type_, {129}, -4, 4);
  ops::run(bench_.dispatcher(), ops::GeluErf{by_erf, by_erf});
  expect_gelu(by_erf, 4);
  const TensorView a = bench_.input(type_, {129});
  const TensorView b = bench_.input(type_, {129});
  ops::run(bench_.dispatcher(), ops::Add{a, b, b});
  const auto expected = reference_results({"elementwise", {{"COUNT", 129}, {"OPERATION", 1}}, {}},
                                          {bench_.initial(a), bench_.initial(b)});
  bench_.expect(b, expected[0], "add");
}

TEST_P(PlainOpsTest, RopeVision) {
  const TensorView qkv = bench_.input(type_, {3, 3, 2, 12}, -1, 1, 80);
  const TensorView cosine = bench_.input(kFloat, {5, 3});
  const TensorView sine = bench_.input(kFloat, {5, 3});
  const TensorView positions = bench_.given(kInt, {2, 3}, {0, 4, 9, 2, -1, 4});
  ops::run(bench_.dispatcher(), ops::RopeVision{qkv, cosine, sine, positions});
  const std::vector<double>& before = bench_.initial(qkv);
  auto expected = reference_results(
      {"rope_vision", {{"PATCHES", 3}, {"HEADS", 2}, {"HEAD_DIM", 12}, {"POSITIONS", 5}, {"QKV_STRIDE", 80}}, {}},
      {before, bench_.initial(cosine), bench_.initial(sine), bench_.initial(positions)});
  expected[0].resize(before.size());
  bench_.expect(qkv, expected[0], "qkv");
}

TEST_P(PlainOpsTest, PositionEmbedding) {
  const TensorView x = bench_.input(type_, {24, 37});
  const TensorView table = bench_.input(kFloat, {5, 5, 37});
  const TensorView y = bench_.output(type_, {24, 37});
  ops::run(bench_.dispatcher(), ops::PositionEmbedding{x, table, y, 4, 6, 2});
  const auto expected = reference_results(
      {"position_embedding", {{"GRID_H", 4}, {"GRID_W", 6}, {"WIDTH", 37}, {"SIDE", 5}, {"MERGE", 2}}, {}},
      {bench_.initial(x), bench_.initial(table)});
  bench_.expect(y, expected[0], "y");
}

INSTANTIATE_TEST_SUITE_P(Types, PlainOpsTest, ::testing::Values(kFloat, kHalf));

}  // namespace
}  // namespace pascaline::testing
