// A feed-forward block in one launch on the emulated device, against the chain of operations that it replaces.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.hpp"
#include "runtime/formats/draw.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/mlp.hpp"
#include "runtime/ops/norm.hpp"
#include "tests/runtime/ops/checks_test.hpp"
#include "tests/runtime/ops/host_buffer.hpp"
#include "tests/runtime/ops/op_bench.hpp"

namespace pascaline::testing {
namespace {

/// Types of gate and factor, and of the product back.
using WeightTypes = std::tuple<ElementType, ElementType>;

class MlpOpsTest : public ::testing::TestWithParam<WeightTypes> {
 protected:
  static constexpr std::int64_t kHidden = 256;
  static constexpr std::int64_t kIntermediate = 512;

  // The same one after the other. Where weights are packed, rows are rounded by the products.
  void run_chain(const ops::Mlp& of) {
    const std::int64_t m = of.x.shape[0];
    const TensorView normed = bench_.output(kFloat, {m, kHidden});
    const TensorView gated = bench_.output(kFloat, {m, kIntermediate});
    if (normed_by_product()) {
      ops::run(bench_.dispatcher(), ops::NormedMatmul{.a = of.x,
                                                      .norm = of.norm,
                                                      .b = of.gate_up,
                                                      .c = gated,
                                                      .epilogue = ops::Epilogue::swiglu,
                                                      .epsilon = of.epsilon});
    } else {
      ops::run(bench_.dispatcher(), ops::Rmsnorm{.x = of.x, .weight = of.norm, .y = normed, .epsilon = of.epsilon});
      ops::run(bench_.dispatcher(),
               ops::Matmul{.a = normed, .b = of.gate_up, .c = gated, .epilogue = ops::Epilogue::swiglu});
    }
    ops::run(bench_.dispatcher(),
             ops::Matmul{.a = gated, .b = of.down, .c = of.c, .residual = of.x, .epilogue = ops::Epilogue::residual});
  }

  [[nodiscard]] bool normed_by_product() const {
    return is_packed_format(std::get<0>(GetParam())) && std::get<0>(GetParam()) != ElementType::int8_row;
  }

  [[nodiscard]] ops::Mlp problem(std::int64_t m) {
    return {.x = bench_.input(kFloat, {m, kHidden}),
            .norm = bench_.input(kFloat, {kHidden}, 0.5, 1.5),
            .gate_up = {gate_up_.data(), std::get<0>(GetParam()), {2 * kIntermediate, kHidden}},
            .down = {down_.data(), std::get<1>(GetParam()), {kHidden, kIntermediate}},
            .c = bench_.output(kFloat, {m, kHidden}),
            .epsilon = {10'000}};
  }

  // Floats are rounded elsewhere in sums of other orders. An integer that is rounded the other way changes a result by
  // a step of its block's scale times a weight; few are.
  void expect_near(const TensorView& tensor, const std::vector<double>& expected) {
    const std::vector<double> values = bench_.values(tensor);
    const double allowed = is_packed_format(std::get<0>(GetParam())) ? 2e-2 : 1e-5;
    double squares = 0;
    for (const double value : expected) {
      squares += value * value;
    }
    const double magnitude = std::sqrt(squares / static_cast<double>(expected.size()));
    ASSERT_GT(magnitude, 0.5);
    std::size_t moved = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], expected[i], allowed * magnitude) << i;
      moved += std::abs(values[i] - expected[i]) > 1e-5 * magnitude ? 1 : 0;
    }
    // Of int8_row, rows are divided by their norm before they are rounded in the chain, and after that here.
    if (std::get<0>(GetParam()) != ElementType::int8_row) {
      EXPECT_LE(moved, values.size() / 2) << "a whole row differs only where one of its integers does";
    }
  }

  OpBench bench_;
  // The device's memory is the host's.
  HostBuffer gate_up_{draw_matrix(std::get<0>(GetParam()), 2 * kIntermediate, kHidden, Fill::uniform, -0.2, 0.2, 3)};
  HostBuffer down_{draw_matrix(std::get<1>(GetParam()), kHidden, kIntermediate, Fill::uniform, -1, 1, 4)};
};

TEST_P(MlpOpsTest, GivesWhatTheChainOfSingleOperationsGives) {
  for (const std::int64_t m : {1, 3}) {
    SCOPED_TRACE(m);
    ops::Mlp together = problem(m);
    ops::Mlp chain = together;
    chain.c = bench_.output(kFloat, {m, kHidden});
    run_chain(chain);
    const std::vector<double> expected = bench_.values(chain.c);
    // Twice: the second launch finds the counters that the first left.
    ops::run(bench_.dispatcher(), together);
    expect_near(together.c, expected);
    ops::run(bench_.dispatcher(), together);
    expect_near(together.c, expected);
    // In place, as a decoder has it.
    together.c = together.x;
    ops::run(bench_.dispatcher(), together);
    expect_near(together.c, expected);
  }
}

std::string name_of_types(const ::testing::TestParamInfo<WeightTypes>& tested) {
  return std::string(name_of(std::get<0>(tested.param))) + "_" + std::string(name_of(std::get<1>(tested.param)));
}

INSTANTIATE_TEST_SUITE_P(Weights, MlpOpsTest,
                         ::testing::Values(WeightTypes{ElementType::float32, ElementType::float32},
                                           WeightTypes{ElementType::float16, ElementType::float16},
                                           WeightTypes{ElementType::q8_0, ElementType::q8_0},
                                           WeightTypes{ElementType::q4_k, ElementType::q6_k},
                                           WeightTypes{ElementType::int8_row, ElementType::q4_0}),
                         name_of_types);

class MlpChecksTest : public ChecksTest {
 protected:
  [[nodiscard]] ops::Mlp good() {
    return {.x = tensor(ElementType::float32, {3, 100}),
            .norm = tensor(ElementType::float32, {100}),
            .gate_up = tensor(ElementType::q4_k, {60, 100}),
            .down = tensor(ElementType::q6_k, {100, 30}),
            .c = tensor(ElementType::float32, {3, 100})};
  }
};

TEST_F(MlpChecksTest, NamesItsProblem) {
  EXPECT_EQ(refusal(good()), "taken");
  EXPECT_EQ(good().problem().named().text(),
            "mlp M=3 HIDDEN=100 INTERMEDIATE=30 EPSILON=1000 STORAGE=float32 WEIGHT=q4_k DOWN=q6_k");
  ops::Mlp op = good();
  op.gate_up.type = op.down.type = ElementType::float16x;
  op.x.type = op.c.type = ElementType::float16;
  op.epsilon = {5000};
  EXPECT_EQ(refusal(op), "taken");
  EXPECT_EQ(op.problem().named().text(),
            "mlp M=3 HIDDEN=100 INTERMEDIATE=30 EPSILON=5000 STORAGE=float16 WEIGHT=float16x DOWN=float16x");
  op.x.shape[0] = op.c.shape[0] = 0;
  EXPECT_EQ(refusal(op), "nothing to do");
}

TEST_F(MlpChecksTest, RefusesWhatDoesNotFit) {
  ops::Mlp op = good();
  op.down.type = ElementType::float16;
  expect_refusal(op, "gate_up and down have neither elements of the same size nor packed formats both");
  op = good();
  op.gate_up.type = ElementType::float16;
  op.down.type = ElementType::float32;
  expect_refusal(op, "gate_up and down have neither elements of the same size nor packed formats both");
  op = good();
  op.gate_up.shape[0] = 59;
  expect_refusal(op, "gate_up is [59,100]; it must be [2*INTERMEDIATE,HIDDEN] = [60,100]");
  op = good();
  op.norm.shape[0] = 99;
  expect_refusal(op, "norm is [99]");
  op = good();
  op.x.shape[0] = op.c.shape[0] = 9;
  expect_refusal(op, "more than 8 rows of x");
  op = good();
  op.c.type = ElementType::float16;
  expect_refusal(op, "C is float16");
  op = good();
  op.epsilon = {0};
  expect_refusal(op, "epsilon");
  op = good();
  op.gate_up.shape[0] = op.down.shape[1] = 0;
  expect_refusal(op, "INTERMEDIATE");
}

}  // namespace
}  // namespace pascaline::testing
