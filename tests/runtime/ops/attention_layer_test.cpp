// A token's whole attention in one launch on the emulated device: against the operations that it joins, one after the
// other, and what is refused.

#include "runtime/ops/attention_layer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "runtime/formats/draw.hpp"
#include "runtime/ops/attention_projected.hpp"
#include "runtime/ops/matmul.hpp"
#include "tests/runtime/ops/checks_test.hpp"
#include "tests/runtime/ops/host_buffer.hpp"
#include "tests/runtime/ops/op_bench.hpp"

namespace pascaline::testing {
namespace {

struct LayerCase {
  const char* name;
  ElementType cache;
  ElementType qkv;
  ElementType output;
  bool is_normed;  ///< heads are normalised
};

void PrintTo(const LayerCase& tested, std::ostream* out) { *out << tested.name; }

double root_mean_square(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) {
    squares += value * value;
  }
  return std::sqrt(squares / static_cast<double>(values.size()));
}

// 4 heads of queries over 2 of keys, 16 columns each.
class AttentionLayerTest : public ::testing::TestWithParam<LayerCase> {
 protected:
  static constexpr std::int64_t kHidden = 256;
  static constexpr std::int64_t kKeys = 201;

  // Other numbers each time, the same on every bench.
  [[nodiscard]] ops::AttentionLayer drawn(OpBench& bench, double length) const {
    const LayerCase& tested = GetParam();
    const bool is_scaled = tested.cache == ElementType::int8;
    ops::AttentionLayer of;
    of.x = bench.input(kFloat, {1, kHidden});
    of.norm = bench.input(kFloat, {kHidden}, 0.5, 1.5);
    of.qkv_weight = {qkv_.data(), tested.qkv, {128, kHidden}};
    if (tested.is_normed) {
      of.q_weight = bench.input(kFloat, {16}, 0.5, 2);
      of.k_weight = bench.input(kFloat, {16}, 0.5, 2);
    }
    of.cosine = bench.input(kFloat, {9, 8});
    of.sine = bench.input(kFloat, {9, 8});
    of.positions = bench.given(kInt, {3, 1}, {7, 3, 40});
    of.length = bench.given(kInt, {1}, {length});
    of.k_cache = bench.input(tested.cache, {kKeys, 2, 16}, is_scaled ? -127 : -2, is_scaled ? 128 : 2);
    of.v_cache = bench.input(tested.cache, {kKeys, 2, 16}, is_scaled ? -127 : -2, is_scaled ? 128 : 2);
    of.weight = {output_.data(), tested.output, {kHidden, 64}};
    of.c = bench.output(kFloat, {1, kHidden});
    if (is_scaled) {
      of.k_scales = bench.input(kFloat, {kKeys, 2}, 0.004, 0.012);
      of.v_scales = bench.input(kFloat, {kKeys, 2}, 0.004, 0.012);
    }
    of.section_h = 2;
    of.section_w = 3;
    of.epsilon = {10'000};
    return of;
  }

  static void run_chain(OpBench& bench, const ops::AttentionLayer& of) {
    const TensorView row = bench.output(kFloat, {1, 128});
    ops::run(bench.dispatcher(),
             ops::NormedMatmul{.a = of.x, .norm = of.norm, .b = of.qkv_weight, .c = row, .epsilon = of.epsilon});
    ops::run(bench.dispatcher(),
             ops::AttentionProjected{of, of.length, {row.data, kFloat, {8, 16}}, of.x, of.weight, of.c});
  }

  // Of a new row, whose sums were added in another order; integers may be the next ones.
  static void expect_same_cache(const std::vector<double>& got, const std::vector<double>& expected, ElementType type) {
    ASSERT_EQ(got.size(), expected.size());
    const double part = type == kHalf ? 1e-3 : 1e-5;
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], expected[i], type == ElementType::int8 ? 1 : part * (1 + std::abs(expected[i]))) << i;
    }
  }

  // Whether an integer of what attention gives was rounded the other way: a whole row differs then, by a step of a
  // block's scale times a weight.
  static bool expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
    const double magnitude = root_mean_square(expected);
    EXPECT_GT(magnitude, 0.5);
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(got[i], expected[i], 2e-2 * magnitude) << i;
      worst = std::max(worst, std::abs(got[i] - expected[i]));
    }
    return worst > 1e-5 * magnitude;
  }

  // The device's memory is the host's.
  HostBuffer qkv_{draw_matrix(GetParam().qkv, 128, kHidden, Fill::uniform, -0.2, 0.2, 3)};
  HostBuffer output_{draw_matrix(GetParam().output, kHidden, 64, Fill::uniform, -1, 1, 4)};
};

TEST_P(AttentionLayerTest, GivesWhatItsOperationsDoOneAfterTheOther) {
  int moved = 0;
  OpBench chain;
  OpBench bench;
  // Each launch finds counters, and memory for what is handed on, as those before have left them, of other numbers.
  for (const double length : {0.0, 1.0, 77.0, 201.0, 300.0}) {
    SCOPED_TRACE(length);
    const ops::AttentionLayer single = drawn(chain, length);
    run_chain(chain, single);
    const std::vector<double> expected = chain.values(single.c);
    ops::AttentionLayer of = drawn(bench, length);
    // The second time in place, as a decoder has it.
    for (const TensorView& c : {of.c, of.x}) {
      of.c = c;
      ops::run(bench.dispatcher(), of);
      moved += expect_near(bench.values(of.c), expected) ? 1 : 0;
      expect_same_cache(bench.values(of.k_cache), chain.values(single.k_cache), GetParam().cache);
      expect_same_cache(bench.values(of.v_cache), chain.values(single.v_cache), GetParam().cache);
      expect_same_cache(bench.values(of.k_scales), chain.values(single.k_scales), kFloat);
      expect_same_cache(bench.values(of.v_scales), chain.values(single.v_scales), kFloat);
    }
  }
  EXPECT_LE(moved, 2) << "few integers are rounded the other way";
}

constexpr LayerCase kLayerCases[] = {
    {"Bytes", kFloat, ElementType::q8_0, ElementType::q8_0, true},
    {"HalfCache", kHalf, ElementType::q4_k, ElementType::q6_k, true},
    {"Int8Cache", ElementType::int8, ElementType::q4_k, ElementType::q8_0, true},
    {"HeadsOnlyTurned", kFloat, ElementType::q8_0, ElementType::q8_0, false},
};

INSTANTIATE_TEST_SUITE_P(Types, AttentionLayerTest, ::testing::ValuesIn(kLayerCases),
                         [](const auto& tested) { return tested.param.name; });

class AttentionLayerChecksTest : public ChecksTest {
 protected:
  [[nodiscard]] ops::AttentionLayer good() {
    const ops::TokenHeads token{.q_weight = tensor(kFloat, {16}),
                                .k_weight = tensor(kFloat, {16}),
                                .cosine = tensor(kFloat, {9, 8}),
                                .sine = tensor(kFloat, {9, 8}),
                                .positions = tensor(kInt, {3, 1}),
                                .k_cache = tensor(ElementType::int8, {20, 2, 16}),
                                .v_cache = tensor(ElementType::int8, {20, 2, 16}),
                                .k_scales = tensor(kFloat, {20, 2}),
                                .v_scales = tensor(kFloat, {20, 2}),
                                .section_h = 2,
                                .section_w = 3};
    return {token,
            tensor(kInt, {1}),
            tensor(kFloat, {1, 100}),
            tensor(kFloat, {100}),
            tensor(ElementType::q4_k, {128, 100}),
            tensor(ElementType::q6_k, {100, 64}),
            tensor(kFloat, {1, 100})};
  }
  template <typename Spoil>
  void expect_refused(const char* message, const Spoil& spoil) {
    ops::AttentionLayer op = good();
    spoil(op);
    expect_refusal(op, message);
  }
};

TEST_F(AttentionLayerChecksTest, NamesItsProblem) {
  ops::AttentionLayer op = good();
  EXPECT_EQ(refusal(op), "taken");
  EXPECT_EQ(op.problem().named().text(),
            "attention_layer_q HEADS=4 KV_HEADS=2 HEAD_DIM=16 KEYS=20 POSITIONS=9 SECTION_H=2 SECTION_W=3 NORM=1 "
            "EPSILON=1000 HIDDEN=100 STORAGE=float32 CACHE=int8 WEIGHT=q4_k BACK=q6_k");
  op.q_weight = op.k_weight = op.k_scales = op.v_scales = {};
  op.k_cache.type = op.v_cache.type = kFloat;
  op.x.type = op.c.type = kHalf;
  op.epsilon = {5000};
  EXPECT_EQ(refusal(op), "taken");
  EXPECT_EQ(op.problem().named().text(),
            "attention_layer_q HEADS=4 KV_HEADS=2 HEAD_DIM=16 KEYS=20 POSITIONS=9 SECTION_H=2 SECTION_W=3 NORM=0 "
            "EPSILON=5000 HIDDEN=100 STORAGE=float16 CACHE=float32 WEIGHT=q4_k BACK=q6_k");
}

TEST_F(AttentionLayerChecksTest, RefusesWhatDoesNotFit) {
  expect_refused("x is [2,100]", [](auto& op) { op.x.shape[0] = 2; });
  expect_refused("x is int8", [](auto& op) { op.x.type = op.c.type = ElementType::int8; });
  expect_refused("norm is [99]", [](auto& op) { op.norm.shape[0] = 99; });
  expect_refused("norm is float16", [](auto& op) { op.norm.type = kHalf; });
  expect_refused("qkv_weight is [127,100]; it must be [(HEADS+2*KV_HEADS)*HEAD_DIM,HIDDEN] = [112,100]",
                 [](auto& op) { op.qkv_weight.shape[0] = 127; });
  expect_refused("qkv_weight is [128,99]", [](auto& op) { op.qkv_weight.shape[1] = 99; });
  expect_refused("qkv_weight has no rows besides those of keys and values",
                 [](auto& op) { op.qkv_weight.shape[0] = 64; });
  expect_refused("q_weight", [](auto& op) { op.q_weight = {}; });
  expect_refused("k_weight", [](auto& op) { op.k_weight.shape[0] = 15; });
  expect_refused("cosine is [9,7]", [](auto& op) { op.cosine.shape[1] = 7; });
  expect_refused("sine is [8,8]", [](auto& op) { op.sine.shape[0] = 8; });
  expect_refused("positions is [2,1]", [](auto& op) { op.positions.shape[0] = 2; });
  expect_refused("length is float32", [](auto& op) { op.length.type = kFloat; });
  expect_refused("k_cache is bfloat16", [](auto& op) { op.k_cache.type = ElementType::bfloat16; });
  expect_refused("v_cache is [19,2,16]", [](auto& op) { op.v_cache.shape[0] = 19; });
  expect_refused("k_scales", [](auto& op) { op.k_scales = {}; });
  expect_refused("v_scales is [20,1]", [](auto& op) { op.v_scales.shape[1] = 1; });
  expect_refused("output_weight is [100,48]; it must be [HIDDEN,HEADS*HEAD_DIM] = [100,64]",
                 [](auto& op) { op.weight.shape[1] = 48; });
  expect_refused("C is float16", [](auto& op) { op.c.type = kHalf; });
  expect_refused("C is [1,99]", [](auto& op) { op.c.shape[1] = 99; });
  expect_refused("epsilon", [](auto& op) { op.epsilon = {0}; });
  expect_refused("HEADS", [](auto& op) {
    op.qkv_weight.shape[0] = 112;
    op.weight.shape[1] = 48;
  });
}

// There is no kernel for plain weights.
TEST_F(AttentionLayerChecksTest, RefusesWeightsThatAreNotPacked) {
  const char* const message = "qkv_weight and output_weight do not have packed formats both";
  expect_refused(message, [](auto& op) { op.weight.type = kHalf; });
  expect_refused(message, [](auto& op) { op.qkv_weight.type = kFloat; });
  expect_refused(message, [](auto& op) { op.qkv_weight.type = op.weight.type = ElementType::float16x; });
}

}  // namespace
}  // namespace pascaline::testing
