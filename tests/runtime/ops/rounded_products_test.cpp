// Products of a few rows with quantized weights on the emulated device: rows that the kernel rounds by itself, and rows
// that another rounded.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/formats/draw.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/norm.hpp"
#include "tests/runtime/formats/all_formats.hpp"
#include "tests/runtime/ops/host_buffer.hpp"
#include "tests/runtime/ops/op_bench.hpp"

namespace pascaline::testing {
namespace {

class RoundedProductsTest : public ::testing::TestWithParam<ElementType> {
 protected:
  static constexpr std::int64_t kColumns = 512;  // whole chunks of every format
  static constexpr std::int64_t kRows = 128;     // of the weight

  [[nodiscard]] ops::QuantizedRows rows_for(std::int64_t m) {
    return {bench_.output(ElementType::int8, {m, kColumns}),
            bench_.output(kFloat, {ops::scale_rows(format_, kColumns), m})};
  }

  OpBench bench_;
  ElementType format_ = GetParam();
  HostBuffer packed_{
      draw_matrix(format_, kRows, kColumns, Fill::uniform, -1, 1, 3)};  // the device's memory is the host's
  TensorView weight_{packed_.data(), format_, {kRows, kColumns}};
};

// The same integers, multiplied in the same order.
TEST_P(RoundedProductsTest, WhoRoundsTheRowsChangesNothing) {
  for (const std::int64_t m : {1, 3}) {
    const TensorView a = bench_.input(kFloat, {m, kColumns}, -3, 3);
    const TensorView residual = bench_.input(kFloat, {m, kRows});
    const TensorView alone = bench_.output(kFloat, {m, kRows});
    const TensorView together = bench_.output(kFloat, {m, kRows});
    const ops::QuantizedRows rounded = rows_for(m);
    ops::run(bench_.dispatcher(),
             ops::Matmul{.a = a, .b = weight_, .c = alone, .residual = residual, .epilogue = ops::Epilogue::residual});
    ops::run(bench_.dispatcher(), ops::Quantize{.x = a, .y = rounded, .for_weight = format_});
    ops::run(bench_.dispatcher(),
             ops::QuantizedMatmul{
                 .a = rounded, .b = weight_, .c = together, .residual = residual, .epilogue = ops::Epilogue::residual});
    EXPECT_EQ(bench_.values(together), bench_.values(alone)) << m << " rows";
  }
}

// A decoding step's way through a normalisation, SwiGLU and the product after it is that of the processor.
TEST_P(RoundedProductsTest, ANormsRowsGoThroughSwiglu) {
  constexpr std::int64_t kRowsOfA = 2;
  const TensorView x = bench_.input(kFloat, {kRowsOfA, kColumns});
  const TensorView scale = bench_.input(kFloat, {kColumns}, 0.5, 1.5);
  const ops::QuantizedRows normed = rows_for(kRowsOfA);
  const ops::QuantizedRows gated{bench_.output(ElementType::int8, {kRowsOfA, kRows / 2}),
                                 bench_.output(kFloat, {kRows / 64, kRowsOfA})};
  const ops::Rmsnorm norm{
      .x = x, .weight = scale, .y = normed.values, .scales = normed.scales, .by_row = format_ == ElementType::int8_row};
  const ops::QuantizedMatmul product{
      .a = normed, .b = weight_, .rounded = gated, .epilogue = ops::Epilogue::swiglu_int8};
  ops::run(bench_.dispatcher(), norm);
  ops::run(bench_.dispatcher(), product);
  const std::vector<double> integers = bench_.values(gated.values);
  const std::vector<double> scales = bench_.values(gated.scales);
  ops::compute(product);  // of the rows that the device rounded
  const std::vector<double> other_integers = bench_.values(gated.values);
  const std::vector<double> other_scales = bench_.values(gated.scales);
  int moved = 0;
  for (std::size_t i = 0; i < integers.size(); ++i) {
    ASSERT_NEAR(integers[i], other_integers[i], 1) << i;
    moved += integers[i] == other_integers[i] ? 0 : 1;
  }
  EXPECT_LE(moved, 2) << "sums in another order move few results across the middle of two integers";
  for (std::size_t i = 0; i < scales.size(); ++i) {
    ASSERT_NEAR(scales[i], other_scales[i], 1e-5 * other_scales[i]) << i;
  }
}

// The product that normalises its rows gives what normalising them before gives, but for what is rounded otherwise.
TEST_P(RoundedProductsTest, AProductNormalisesItsRows) {
  if (format_ == ElementType::int8_row) {
    GTEST_SKIP() << "rows with one scale are normalised before";
  }
  constexpr std::int64_t kRowsOfA = 3;
  const TensorView x = bench_.input(kFloat, {kRowsOfA, kColumns}, -3, 5);
  const TensorView scale = bench_.input(kFloat, {kColumns}, 0.5, 1.5);
  const TensorView normed = bench_.output(kFloat, {kRowsOfA, kColumns});
  const TensorView apart = bench_.output(kFloat, {kRowsOfA, kRows});
  const TensorView fused = bench_.output(kFloat, {kRowsOfA, kRows});
  ops::run(bench_.dispatcher(), ops::Rmsnorm{.x = x, .weight = scale, .y = normed});
  ops::run(bench_.dispatcher(), ops::Matmul{.a = normed, .b = weight_, .c = apart});
  const ops::NormedMatmul product{.a = x, .norm = scale, .b = weight_, .c = fused};
  ops::run(bench_.dispatcher(), product);
  const std::vector<double> expected = bench_.values(apart);
  const std::vector<double> on_device = bench_.values(fused);
  ops::compute(product);
  const std::vector<double> on_processor = bench_.values(fused);
  double rounded_otherwise = 0;
  double differences = 0;
  double squares = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    differences += std::pow(on_device[i] - on_processor[i], 2);
    rounded_otherwise += std::pow(on_device[i] - expected[i], 2);
    squares += expected[i] * expected[i];
  }
  EXPECT_LT(std::sqrt(differences / squares), 1e-6) << "the same integers, added up in another order";
  EXPECT_LT(std::sqrt(rounded_otherwise / squares), 2e-3);
}

INSTANTIATE_TEST_SUITE_P(Formats, RoundedProductsTest, ::testing::ValuesIn(kPackedTypes),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace pascaline::testing
