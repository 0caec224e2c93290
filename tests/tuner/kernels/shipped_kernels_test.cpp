#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/db/fixtures.hpp"
#include "tests/share.hpp"
#include "tests/tuner/program.hpp"

namespace pascaline::testing {
namespace {

/// A kernel of this tree and a shape that divides by little.
struct Shape {
  std::string kernel;
  std::string problem;

  friend void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.kernel << ' ' << shape.problem; }
};

// The default and one drawn configuration, under AddressSanitizer and against the reference.
class ShippedKernelsTest : public ::testing::TestWithParam<Shape> {};

TEST_P(ShippedKernelsTest, AgreeWithTheirReference) {
  const TemporaryFolder folder;
  const std::string limit = std::to_string(shared_part(2, "configurations"));
  std::vector<std::string> words{"check", "--kernel", GetParam().kernel, "--limit", limit};
  if (!GetParam().problem.empty()) {  // a kernel without dimensions has but one
    words.insert(words.end(), {"--problem", GetParam().problem});
  }
  const ProgramResult result = run_program(folder.path(), words);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.error;
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ShippedKernelsTest,
    ::testing::Values(
        Shape{"rmsnorm", "ROWS=3,WIDTH=1037,RESIDUAL=1,STORAGE=float16,OUTPUT=float32"},
        Shape{"layernorm", "ROWS=3,WIDTH=2056,STORAGE=float16"}, Shape{"softmax", "ROWS=5,WIDTH=61"},
        Shape{"qk_norm_rope",
              "TOKENS=3,HEADS=4,KV_HEADS=2,HEAD_DIM=128,CACHE_ROWS=2,POSITIONS=5,STORAGE=float16,CACHE=float32"},
        Shape{"rope_vision", "PATCHES=3,HEADS=3,HEAD_DIM=64,QKV_STRIDE=577"},
        Shape{"elementwise", "COUNT=1003,OPERATION=2,INPUT=bfloat16,OUTPUT=float32"},
        Shape{"transpose", "ROWS=65,COLUMNS=131,STORAGE=float16"},
        Shape{"gather", "TOKENS=9,WIDTH=257,VOCABULARY=3,TABLE=bfloat16"},
        Shape{"position_embedding", "GRID_H=4,GRID_W=6,WIDTH=37,SIDE=5"}, Shape{"sample", "VOCABULARY=4099"},
        Shape{"sample_next", "VOCABULARY=4099,WIDTH=131,TABLE=bfloat16"}, Shape{"advance", ""},
        Shape{"matmul", "M=7,N=18,K=37,EPILOGUE=5"}, Shape{"matvec", "M=3,N=18,K=37,EPILOGUE=6"},
        Shape{"attention_prefill", "HEADS=4,KV_HEADS=2,HEAD_DIM=72,QUERIES=9,KEYS=20"},
        Shape{"attention_decode", "HEADS=4,KV_HEADS=2,HEAD_DIM=40,KEYS=20"},
        Shape{"attention_decode", "HEADS=6,KV_HEADS=2,HEAD_DIM=32,KEYS=20,OUTPUT=int8"},
        Shape{"attention_sparse_prefill", "HEADS=4,KV_HEADS=2,HEAD_DIM=24,QUERIES=70,WINDOW=9,SINKS=3"},
        Shape{"attention_sparse_prefill", "HEADS=4,KV_HEADS=2,HEAD_DIM=32,QUERIES=9,KEYS=200,LISTS=2,WIDTH=3"},
        Shape{"attention_sparse_decode", "HEADS=4,KV_HEADS=2,HEAD_DIM=56,KEYS=200,BLOCK=16,WINDOW=9,SINKS=16,STRIDE=3"},
        Shape{"attention_sparse_decode", "HEADS=6,KV_HEADS=2,HEAD_DIM=32,KEYS=200,LISTS=1,OUTPUT=int8"},
        Shape{"pool_blocks", "KV_HEADS=2,HEAD_DIM=40,KEYS=70,NEW=40,BLOCK=16,CACHE=int8"},
        Shape{"score_blocks", "HEADS=4,KV_HEADS=2,HEAD_DIM=72,QUERIES=40,KEYS=100,BLOCK=16"},
        Shape{"choose_blocks", "LISTS=2,QUERIES=40,KEYS=500,BLOCK=16,PART=300000"},
        Shape{"qk_norm_rope", "TOKENS=3,HEADS=4,KV_HEADS=2,HEAD_DIM=64,CACHE_ROWS=4,PARTS=3,CACHE=int8"},
        Shape{"matvec_q", "M=3,N=18,K=37,EPILOGUE=6,WEIGHT=q4_k"},
        Shape{"matvec_q", "M=3,N=18,K=128,EPILOGUE=5,INPUT=int8,WEIGHT=int8_row"},
        Shape{"matvec_q", "M=3,N=192,K=37,EPILOGUE=7,WEIGHT=q4_1"},
        Shape{"matvec_q", "M=3,N=192,K=37,EPILOGUE=7,NORM=1,WEIGHT=q4_k"},
        Shape{"matvec_q", "M=1,N=50,K=300,EPILOGUE=4,NORM=1,WEIGHT=q8_0"},
        Shape{"matvec_q", "M=3,N=192,K=256,EPILOGUE=7,INPUT=int8,WEIGHT=q6_k"},
        Shape{"matvec_q", "M=2,N=18,K=300,EPILOGUE=6,WEIGHT=q2_k"}, Shape{"matmul_q", "M=9,N=70,K=512,WEIGHT=q2_k"},
        Shape{"matmul_q", "M=9,N=70,K=512,WEIGHT=q3_k"}, Shape{"matvec_q", "M=1,N=18,K=300,EPILOGUE=4,WEIGHT=q3_k"},
        Shape{"matvec_q", "M=3,N=18,K=37,EPILOGUE=6,WEIGHT=mxfp4"}),
    [](const auto& shape) { return fmt::format("{}_{}", shape.param.kernel, shape.index); });

TEST(ShippedEpiloguesTest, FewResultsNearZeroAreNotTakenForWrong) {
  const TemporaryFolder folder;
  for (const char* seed : {"20", "23"}) {  // both sums are far below zero, where GELU all but vanishes
    const ProgramResult result = run_program(
        folder.path(), {"check", "--kernel", "matvec", "--problem", "M=1,N=2,K=4096,EPILOGUE=3", "--seed", seed});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.error;
  }
}

}  // namespace
}  // namespace pascaline::testing
