// An image's queries, keys and values in one product, against a norm, a product and a rotation, on the emulated device.

#include "runtime/ops/vision_qkv.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/runtime/ops/op_bench.hpp"

namespace pascaline::testing {
namespace {

struct TurnedHeads {
  bool is_normed;
  std::int64_t head_dim;
  ElementType weight = kFloat;
};

class VisionQkvTest : public ::testing::TestWithParam<TurnedHeads> {};

// Patches, heads and width; of the last one blocks share the depth.
constexpr std::int64_t kImages[8][3] = {{9, 1, 5},   {16, 2, 17}, {33, 3, 30}, {64, 1, 61},
                                        {65, 2, 93}, {70, 1, 66}, {100, 3, 9}, {36, 2, 259}};

TEST_P(VisionQkvTest, GivesWhatTheNormTheProductAndTheRotationGive) {
  const TurnedHeads& of = GetParam();
  OpBench bench;
  for (const auto& [patches, heads, width] : kImages) {
    SCOPED_TRACE(std::to_string(patches) + " patches, " + std::to_string(heads) + " heads, width " +
                 std::to_string(width));
    const std::int64_t columns = 3 * heads * of.head_dim;
    const auto positions = bench.input(kInt, {2, patches}, -2, 9);
    ops::VisionQkv fused{.a = bench.input(kFloat, {patches, width}),
                         .b = bench.input(of.weight, {columns, width}),
                         .bias = bench.input(kFloat, {columns}),
                         .qkv = bench.output(kFloat, {patches, 3, heads, of.head_dim}),
                         .cosine = bench.input(kFloat, {7, of.head_dim / 4}),
                         .sine = bench.input(kFloat, {7, of.head_dim / 4}),
                         .positions = positions};
    TensorView rows = fused.a;
    if (of.is_normed) {
      fused.norm = bench.input(kFloat, {width});
      fused.norm_bias = bench.input(kFloat, {width});
      fused.statistics = bench.output(kFloat, {2, patches});
      rows = bench.output(kFloat, {patches, width});
      ops::run(bench.dispatcher(),
               ops::Layernorm{.x = fused.a, .weight = fused.norm, .bias = fused.norm_bias, .y = rows});
      ops::run(bench.dispatcher(),
               ops::RowStatistics{.x = fused.a, .statistics = fused.statistics, .norm = ops::RowNorm::layer});
    }
    const TensorView flat = bench.output(kFloat, {patches, columns});
    ops::run(bench.dispatcher(),
             ops::Matmul{.a = rows, .b = fused.b, .c = flat, .bias = fused.bias, .epilogue = ops::Epilogue::bias});
    const TensorView qkv(flat.data, kFloat, {patches, 3, heads, of.head_dim});
    ops::run(bench.dispatcher(),
             ops::RopeVision{.qkv = qkv, .cosine = fused.cosine, .sine = fused.sine, .positions = positions});
    ops::run(bench.dispatcher(), fused);
    const std::vector<double> expected = bench.values(flat);
    const std::vector<double> values = bench.values(fused.qkv);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], expected[i], 3e-6 * (std::sqrt(static_cast<double>(width)) + std::abs(expected[i])))
          << "row " << i / static_cast<std::size_t>(columns) << ", column " << i % static_cast<std::size_t>(columns);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codes, VisionQkvTest,
                         ::testing::Values(TurnedHeads{false, 16}, TurnedHeads{true, 12, ElementType::bfloat16},
                                           TurnedHeads{true, 64, kHalf}));

TEST(VisionQkvRefusalsTest, NameTheOperand) {
  OpBench bench;
  const ops::VisionQkv good{.a = bench.input(kFloat, {10, 20}),
                            .b = bench.input(kFloat, {96, 20}),
                            .bias = bench.input(kFloat, {96}),
                            .qkv = bench.output(kFloat, {10, 3, 2, 16}),
                            .cosine = bench.input(kFloat, {5, 4}),
                            .sine = bench.input(kFloat, {5, 4}),
                            .positions = bench.input(kInt, {2, 10}, 0, 5)};
  EXPECT_TRUE(ops::is_needed(good));
  const auto reason = [&](auto spoil) {
    ops::VisionQkv bad = good;
    spoil(bad);
    try {
      (void)ops::is_needed(bad);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(reason([](auto& of) { of.qkv.shape[1] = 2; }),
            "vision_qkv: qkv is [10,2,2,16]; it must be [PATCHES,3,HEADS,HEAD_DIM] = [10,3,2,16]");
  EXPECT_EQ(reason([](auto& of) { of.statistics = of.cosine; }),
            "vision_qkv: statistics is given, but there is no norm; leave it out");
  EXPECT_EQ(reason([](auto& of) { of.norm = of.bias; }),
            "vision_qkv: there is a norm without its bias; rows are normalised by Layernorm");
  EXPECT_EQ(
      reason([](auto& of) { of.b.type = ElementType::q8_0; }),
      "vision_qkv: B is in a packed format, whose kernels do not turn heads; use QuantizedMatmul, then RopeVision");
}

}  // namespace
}  // namespace pascaline::testing
