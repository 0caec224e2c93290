// A product that normalises on the way, against a norm and a product after it, on the emulated device.

#include "runtime/ops/normalising_matmul.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/runtime/ops/op_bench.hpp"
#include "tests/tuner/kernels/naive_reference.hpp"

namespace pascaline::testing {
namespace {

using ops::Epilogue;
using ops::RowNorm;

/// Code that shapes share: none of its strides is a multiple of what is loaded at once, or all are.
struct Normalised {
  RowNorm norm;
  Epilogue epilogue;
  ElementType weight = kFloat;
  bool aligned = false;
  bool quarters = false;  // of rows are normalised by themselves
};

// Eight shapes for each code, which leave over different parts of tiles and of slices: M, and what N and K are four
// times. Of the last one blocks share the depth.
constexpr std::int64_t kShapes[8][3] = {{9, 1, 1},    {10, 7, 4},   {17, 16, 5},  {31, 17, 8},
                                        {64, 16, 15}, {65, 33, 16}, {129, 9, 31}, {70, 20, 61}};

class NormalisingMatmulTest : public ::testing::TestWithParam<Normalised> {
 protected:
  // The tensors of a product of that shape; `large` times as far from zero as they spread.
  void draw(std::int64_t m, std::int64_t n, std::int64_t k, double large = 0) {
    const Normalised& of = GetParam();
    const std::int64_t parts = of.quarters ? 4 : 1;
    a_ = bench_.input(kFloat, {m, k}, large - 1, large + 1);
    normed_ = TensorView(a_.data, kFloat, {m * parts, k / parts});
    weight_ = bench_.input(kFloat, {k / parts});
    norm_bias_ = of.norm == RowNorm::layer ? bench_.input(kFloat, {k / parts}) : TensorView();
    const bool swiglu = of.epilogue == Epilogue::swiglu;
    chain_ = {.a = bench_.output(kFloat, {m, k}),
              .b = bench_.input(of.weight, {n, k}),
              .c = bench_.output(kFloat, {m, swiglu ? n / 2 : n}),
              .bias = ops::has_bias(of.epilogue) ? bench_.input(kFloat, {n}) : TensorView(),
              .residual = ops::has_residual(of.epilogue) ? bench_.input(kFloat, {m, n}) : TensorView(),
              .epilogue = of.epilogue};
    statistics_ = bench_.output(kFloat, {of.norm == RowNorm::layer ? 2 : 1, m * parts});
  }

  void run_chain() {
    const TensorView y(chain_.a.data, kFloat, {normed_.shape[0], normed_.shape[1]});
    if (GetParam().norm == RowNorm::layer) {
      ops::run(bench_.dispatcher(), ops::Layernorm{.x = normed_, .weight = weight_, .bias = norm_bias_, .y = y});
    } else {
      ops::run(bench_.dispatcher(), ops::Rmsnorm{.x = normed_, .weight = weight_, .y = y});
    }
    ops::run(bench_.dispatcher(), chain_);
  }

  TensorView run_fused() {
    ops::run(bench_.dispatcher(), ops::RowStatistics{.x = normed_, .statistics = statistics_, .norm = GetParam().norm});
    const TensorView c = bench_.output(kFloat, {chain_.c.shape[0], chain_.c.shape[1]});
    ops::run(bench_.dispatcher(), ops::NormalisingMatmul{.a = a_,
                                                         .norm = weight_,
                                                         .norm_bias = norm_bias_,
                                                         .statistics = statistics_,
                                                         .b = chain_.b,
                                                         .c = c,
                                                         .bias = chain_.bias,
                                                         .residual = chain_.residual,
                                                         .epilogue = chain_.epilogue});
    return c;
  }

  // Sums of k products, of the size of one; for SwiGLU products of two.
  void expect_alike(double tolerance) {
    const TensorView fused = run_fused();
    run_chain();
    const std::vector<double> expected = bench_.values(chain_.c);
    const std::vector<double> values = bench_.values(fused);
    const auto k = static_cast<double>(a_.shape[1]);
    const double size = chain_.epilogue == Epilogue::swiglu ? k : std::sqrt(k);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], expected[i], tolerance * (size + std::abs(expected[i]))) << i << " of " << values.size();
    }
  }

  OpBench bench_;
  TensorView a_;
  TensorView normed_;  // the same as the rows that are normalised
  TensorView weight_;
  TensorView norm_bias_;
  TensorView statistics_;
  ops::Matmul chain_;
};

TEST_P(NormalisingMatmulTest, GivesWhatTheNormAndTheProductGive) {
  for (const auto& [m, n, k] : kShapes) {
    SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k));
    const bool aligned = GetParam().aligned;
    draw(m, aligned ? 4 * n : 4 * n + 2, GetParam().quarters ? 32 * k : aligned ? 4 * k : 4 * k + 1);
    ASSERT_NO_FATAL_FAILURE(expect_alike(3e-6));
  }
}

INSTANTIATE_TEST_SUITE_P(Codes, NormalisingMatmulTest,
                         ::testing::Values(Normalised{RowNorm::rms, Epilogue::none},
                                           Normalised{RowNorm::rms, Epilogue::swiglu, ElementType::float16, true},
                                           Normalised{RowNorm::rms, Epilogue::residual, ElementType::bfloat16},
                                           Normalised{RowNorm::layer, Epilogue::bias, kFloat, true},
                                           Normalised{RowNorm::layer, Epilogue::bias_gelu_tanh, kHalf},
                                           Normalised{RowNorm::layer, Epilogue::bias_gelu_erf, kFloat, true, true},
                                           Normalised{RowNorm::layer, Epilogue::bias, kHalf, false, true}));

using FarFromZeroTest = NormalisingMatmulTest;

// Differences to the mean are what LayerNorm multiplies: a row a hundred times as far from zero as it spreads loses two
// of its seven digits, in the chain as here.
TEST_P(FarFromZeroTest, LosesNoMoreDigitsThanTheNorm) {
  draw(33, 36, GetParam().quarters ? 128 : 124, 100);
  expect_alike(2e-5);
}

INSTANTIATE_TEST_SUITE_P(Codes, FarFromZeroTest,
                         ::testing::Values(Normalised{RowNorm::layer, Epilogue::bias, kFloat, true},
                                           Normalised{RowNorm::layer, Epilogue::bias, kFloat, true, true}));

TEST(NormalisingMatmulHostTest, RowsOfFloat16AreNotRoundedBetween) {
  OpBench bench;
  const TensorView a = bench.input(kHalf, {20, 40});
  const TensorView norm = bench.input(kFloat, {40}, 0.5, 1.5);
  const TensorView statistics = bench.input(kFloat, {1, 20}, 0.5, 1.5);
  const TensorView b = bench.input(kHalf, {36, 40});
  const TensorView c = bench.output(kHalf, {20, 36});
  ops::run(bench.dispatcher(), ops::NormalisingMatmul{.a = a, .norm = norm, .statistics = statistics, .b = b, .c = c});
  const auto expected = reference_results(
      {"matmul", {{"M", 20}, {"N", 36}, {"K", 40}, {"EPILOGUE", 0}, {"NORM", 1}}, {}},
      {bench.initial(a), bench.initial(b), {}, {}, bench.initial(norm), {}, bench.initial(statistics)});
  bench.expect(c, expected[0], "c");
}

TEST(NormalisingMatmulRefusalsTest, NameTheOperand) {
  OpBench bench;
  const TensorView matrix = bench.input(kFloat, {16, 32});
  const TensorView vector = bench.input(kFloat, {32});
  const ops::NormalisingMatmul good{.a = matrix,
                                    .norm = vector,
                                    .norm_bias = vector,
                                    .statistics = bench.input(kFloat, {2, 16}),
                                    .b = bench.input(kFloat, {8, 32}),
                                    .c = bench.output(kFloat, {16, 8})};
  EXPECT_TRUE(ops::is_needed(good));
  const auto reason = [&](auto spoil) {
    ops::NormalisingMatmul bad = good;
    spoil(bad);
    try {
      (void)ops::is_needed(bad);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(reason([](auto& of) { of.norm.shape[0] = 31; }), "normalising_matmul: norm is [31]; it must be [K] = [32]");
  EXPECT_EQ(reason([](auto& of) { of.norm.shape[0] = of.norm_bias.shape[0] = 8; }),
            "normalising_matmul: statistics is [2,16]; it must be [NORM,4·M] = [2,64]");
  EXPECT_EQ(reason([](auto& of) {
              of.norm.shape[0] = 8;
              of.norm_bias = {};
            }),
            "normalising_matmul: a norm of quarters of rows is Layernorm, and needs its bias");
  EXPECT_EQ(reason([](auto& of) {
              of.a.shape[1] = of.b.shape[1] = 16;
              of.norm.shape[0] = of.norm_bias.shape[0] = 4;
            }),
            "normalising_matmul: a norm of quarters of rows needs K to be a multiple of 32");
  EXPECT_EQ(reason([](auto& of) { of.norm_bias = {}; }),
            "normalising_matmul: statistics is [2,16]; it must be [NORM,M] = [1,16]");
  EXPECT_EQ(reason([](auto& of) { of.b.type = ElementType::q8_0; }),
            "normalising_matmul: B is in a packed format, whose kernels take rounded rows; let Rmsnorm or Layernorm "
            "round them");
  EXPECT_EQ(reason([](auto& of) {
              of.c = of.a;
              of.c.shape[1] = 8;
            }),
            "normalising_matmul: C overlaps A; it must lie in memory of its own");
}

TEST(RowStatisticsRefusalsTest, NameTheOperand) {
  OpBench bench;
  const ops::RowStatistics good{.x = bench.input(kFloat, {16, 32}), .statistics = bench.output(kFloat, {1, 16})};
  EXPECT_TRUE(ops::is_needed(good));
  ops::RowStatistics bad = good;
  bad.norm = RowNorm::layer;
  EXPECT_THROW((void)ops::is_needed(bad), Error);
  bad = good;
  bad.norm = static_cast<RowNorm>(3);
  EXPECT_THROW((void)ops::is_needed(bad), Error);
  bad = good;
  bad.epsilon = {0};
  EXPECT_THROW((void)ops::is_needed(bad), Error);
}

}  // namespace
}  // namespace pascaline::testing
