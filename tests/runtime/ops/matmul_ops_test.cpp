#include <gtest/gtest.h>

#include "runtime/ops/matmul.hpp"
#include "tests/runtime/ops/op_bench.hpp"
#include "tests/tuner/kernels/naive_reference.hpp"

namespace pascaline::testing {
namespace {

using ops::Epilogue;

struct Product {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  Epilogue epilogue = Epilogue::none;
  ElementType storage = kFloat;
  ElementType weight = kFloat;
};

bool adds_bias(Epilogue epilogue) {
  return epilogue != Epilogue::none && epilogue != Epilogue::residual && epilogue != Epilogue::swiglu;
}

bool adds_residual(Epilogue epilogue) { return epilogue == Epilogue::residual || epilogue == Epilogue::bias_residual; }

class MatmulOpsTest : public ::testing::TestWithParam<Product> {};

TEST_P(MatmulOpsTest, AgreesWithTheReference) {
  const Product& of = GetParam();
  OpBench bench;
  ops::Matmul arguments;
  arguments.epilogue = of.epilogue;
  arguments.a = bench.input(of.storage, {of.m, of.k});
  arguments.b = bench.input(of.weight, {of.n, of.k});
  if (adds_bias(of.epilogue)) {
    arguments.bias = bench.input(kFloat, {of.n});
  }
  if (adds_residual(of.epilogue)) {
    arguments.residual = bench.input(of.storage, {of.m, of.n});
  }
  const std::int64_t columns = of.epilogue == Epilogue::swiglu ? of.n / 2 : of.n;
  arguments.c = bench.output(of.storage, {of.m, columns});
  ops::run(bench.dispatcher(), arguments);
  const auto expected = reference_results(
      {"matmul", {{"M", of.m}, {"N", of.n}, {"K", of.k}, {"EPILOGUE", static_cast<std::int64_t>(of.epilogue)}}, {}},
      {bench.initial(arguments.a), bench.initial(arguments.b), bench.initial(arguments.bias),
       bench.initial(arguments.residual)});
  bench.expect(arguments.c, expected[0], "c");
  EXPECT_EQ(bench.dispatcher().misses().at(0).problem.kernel, of.m <= 8 ? "matvec" : "matmul");
}

INSTANTIATE_TEST_SUITE_P(Shapes, MatmulOpsTest,
                         ::testing::Values(Product{1, 1, 1}, Product{8, 37, 41}, Product{9, 37, 41},
                                           Product{3, 34, 40, Epilogue::swiglu, kHalf, ElementType::bfloat16},
                                           Product{33, 130, 24, Epilogue::swiglu, kHalf, ElementType::bfloat16},
                                           Product{17, 12, 20, Epilogue::bias},
                                           Product{1, 35, 20, Epilogue::bias_gelu_tanh},
                                           Product{17, 12, 20, Epilogue::bias_gelu_erf, kHalf, kHalf},
                                           Product{65, 12, 20, Epilogue::residual},
                                           Product{2, 12, 300, Epilogue::residual, kHalf, kHalf},
                                           Product{17, 13, 20, Epilogue::bias_residual}));

TEST(MatmulOpsHostTest, TheResidualMayReceiveTheResult) {
  for (const std::int64_t m : {4, 20}) {
    OpBench bench;
    const TensorView a = bench.input(kFloat, {m, 24});
    const TensorView b = bench.input(kFloat, {36, 24});
    const TensorView c = bench.input(kFloat, {m, 36});
    ops::run(bench.dispatcher(), ops::Matmul{a, b, c, {}, c, Epilogue::residual});
    const auto expected = reference_results({"matmul", {{"M", m}, {"N", 36}, {"K", 24}, {"EPILOGUE", 4}}, {}},
                                            {bench.initial(a), bench.initial(b), {}, bench.initial(c)});
    bench.expect(c, expected[0], "c");
  }
}

TEST(PatchEmbedTest, IsAProductWithABias) {
  OpBench bench;
  const TensorView patches = bench.input(kFloat, {10, 24});
  const TensorView weight = bench.input(kFloat, {36, 24});
  const TensorView bias = bench.input(kFloat, {36});
  const TensorView y = bench.output(kFloat, {10, 36});
  ops::run(bench.dispatcher(), ops::PatchEmbed{patches, weight, bias, y});
  const auto expected = reference_results({"matmul", {{"M", 10}, {"N", 36}, {"K", 24}, {"EPILOGUE", 1}}, {}},
                                          {bench.initial(patches), bench.initial(weight), bench.initial(bias), {}});
  bench.expect(y, expected[0], "y");
}

}  // namespace
}  // namespace pascaline::testing
