// A token's attention with the projection after it: against the two operations one after the other, and what is
// refused.

#include "runtime/ops/attention_projected.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "runtime/ops/attention_qkv.hpp"
#include "runtime/ops/matmul.hpp"
#include "tests/runtime/ops/checks_test.hpp"
#include "tests/runtime/ops/op_bench.hpp"

namespace pascaline::testing {
namespace {

using AttentionProjectedTest = ChecksTest;

// 4 heads of queries over 2 of keys, 16 columns each.
ops::AttentionProjected drawn(OpBench& bench, ElementType cache, ElementType weight, double length) {
  ops::AttentionProjected of;
  of.qkv = bench.input(kFloat, {8, 16}, -2, 2);
  of.q_weight = bench.input(kFloat, {16}, 0.5, 2);
  of.k_weight = bench.input(kFloat, {16}, 0.5, 2);
  of.cosine = bench.input(kFloat, {9, 8}, -1, 1);
  of.sine = bench.input(kFloat, {9, 8}, -1, 1);
  of.positions = bench.given(ElementType::int32, {3, 1}, {7, 3, 40});
  of.length = bench.given(ElementType::int32, {1}, {length});
  of.k_cache = bench.input(cache, {201, 2, 16}, -2, 2);
  of.v_cache = bench.input(cache, {201, 2, 16}, -2, 2);
  of.x = bench.input(kFloat, {1, 37}, -1, 1);
  of.weight = bench.input(weight, {37, 64}, -1, 1);
  of.c = bench.output(kFloat, {1, 37});
  of.section_h = 2;
  of.section_w = 3;
  return of;
}

TEST_F(AttentionProjectedTest, GivesWhatItsOperationsDoOneAfterTheOther) {
  for (const ElementType cache : {kFloat, kHalf}) {
    for (const double length : {0.0, 1.0, 77.0, 201.0, 300.0}) {
      SCOPED_TRACE(length);
      OpBench bench;
      const ops::AttentionProjected of = drawn(bench, cache, cache, length);
      ops::run(bench.dispatcher(), of);
      OpBench chain;
      const ops::AttentionProjected same = drawn(chain, cache, cache, length);
      const TensorView attended = chain.output(kFloat, {4, 16});
      ops::run(chain.dispatcher(), ops::AttentionDecodeQkv{same, same.length, same.qkv, attended});
      const TensorView row(attended.data, kFloat, {1, 64});
      ops::run(chain.dispatcher(),
               ops::Matmul{
                   .a = row, .b = same.weight, .c = same.c, .residual = same.x, .epilogue = ops::Epilogue::residual});
      EXPECT_EQ(bench.values(of.k_cache), chain.values(same.k_cache));
      EXPECT_EQ(bench.values(of.v_cache), chain.values(same.v_cache));
      const std::vector<double> got = bench.values(of.c);
      const std::vector<double> expected = chain.values(same.c);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(got[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << i;
      }
    }
  }
}

TEST_F(AttentionProjectedTest, RefusesWhatDoesNotFit) {
  OpBench bench;
  const ops::AttentionProjected good = drawn(bench, kFloat, kFloat, 5);
  EXPECT_EQ(refusal(good), "taken");
  const auto expect_refused = [&](const char* message, const auto& spoil) {
    ops::AttentionProjected op = good;
    spoil(op);
    expect_refusal(op, message);
  };
  expect_refused("weight is", [](auto& op) { op.weight.shape[1] = 63; });
  expect_refused("weight is int8", [](auto& op) { op.weight.type = ElementType::int8; });
  expect_refused("x is", [](auto& op) { op.x.type = kHalf; });
  expect_refused("C is", [](auto& op) { op.c.shape[1] = 36; });
  expect_refused("qkv has no heads besides", [](auto& op) { op.qkv.shape[0] = 4; });
  expect_refused("v_cache is", [](auto& op) { op.v_cache.shape[0] = 200; });
  expect_refused("k_weight", [](auto& op) { op.k_weight = {}; });
  expect_refused("HEADS", [](auto& op) {
    op.qkv.shape[0] = 7;
    op.weight.shape[1] = 48;
  });
}

}  // namespace
}  // namespace pascaline::testing
