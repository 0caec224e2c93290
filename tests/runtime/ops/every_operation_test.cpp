#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/util/hash.hpp"
#include "core/util/paths.hpp"
#include "runtime/ops/matmul.hpp"
#include "tests/runtime/ops/cpu_problem.hpp"
#include "tests/share.hpp"
#include "tests/tuner/kernels/ragged_shapes.hpp"

namespace pascaline::testing {
namespace {

Space shipped_space(const std::string& kernel) {
  return Space::load(data_folder("search_spaces") / (kernel + ".json"));
}

// With one thread and with several: right, and the same to the bit.
void expect_right(const Space& space, const Problem& problem, std::uint64_t seed) {
  SCOPED_TRACE(problem.text());
  CpuProblem of(space, problem, seed);
  ASSERT_NO_FATAL_FAILURE(of.check(1));
  const auto alone = of.results();
  ASSERT_NO_FATAL_FAILURE(of.check(3));
  EXPECT_TRUE(of.results() == alone) << "the result depends on the number of threads";
}

// The operations take no residual narrower than y, integers of whole chunks only, and give floats of the type of those
// that they take, though the kernels would do otherwise. What is rounded for the next product has tests of its own.
bool is_taken(const Problem& problem) {
  if (problem.kernel == "matmul_q" || problem.kernel == "matvec_q") {
    const std::int64_t k = problem.dimension("K");
    const bool whole =
        problem.kernel == "matmul_q" || problem.type("INPUT") == ElementType::int8 || problem.dimension("NORM") != 0;
    const bool floats_match = problem.kernel == "matmul_q" || problem.type("INPUT") == ElementType::int8 ||
                              problem.type("INPUT") == problem.type("STORAGE");
    return problem.dimension("EPILOGUE") <= 6 && floats_match &&
           (!whole || ops::filled_columns(problem.type("WEIGHT"), k) == k);
  }
  if (problem.kernel.starts_with("attention_decode") || problem.kernel == "attention_sparse_decode") {
    const ElementType output = problem.type("OUTPUT");
    return output == ElementType::int8 || output == problem.type("STORAGE");
  }
  const bool norm = problem.kernel == "rmsnorm" || problem.kernel == "layernorm";
  return !norm || problem.dimension("RESIDUAL") == 0 ||
         size_of(problem.type("OUTPUT")) <= size_of(problem.type("STORAGE"));
}

// Kernels that an operation launches; what no operation knows is checked on a device only.
class EveryOperationTest : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(EveryOperationTest, AgreesWithTheReferenceAtRaggedShapes) {
  const auto& [kernel, storage] = GetParam();
  const Space space = shipped_space(kernel);
  const std::uint64_t seed = std::stoull(hash_hex(kernel + storage).substr(0, 15), nullptr, 16);
  RaggedShapes draw(seed);
  // Most shapes share the reference's code with others, as long as such are drawn: it is compiled.
  const std::size_t most_references = shared_part(3, "references");
  const std::size_t shapes = shared_part(16, "shapes");
  constexpr int kDraws = 400;
  std::set<std::vector<std::string>> references;
  int draws = 0;
  for (std::uint64_t shape = 1; shape <= shapes;) {
    const DeviceLimits limits = *limits_of_architecture("sm_61");
    const Problem problem = draw.problem(space, {kernel, *element_type_from(storage)}, limits);
    const BoundSpace bound(space, problem, limits);
    const std::vector<std::string> defines = bound.defines(bound.default_config());
    const bool known = references.size() < most_references || references.contains(defines) || ++draws > kDraws;
    if (is_taken(problem) && known) {
      references.insert(defines);
      draws = 0;
      ASSERT_NO_FATAL_FAILURE(expect_right(space, problem, shape++));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, EveryOperationTest,
                         ::testing::Combine(::testing::ValuesIn(CpuProblem::kernels()),
                                            ::testing::Values("float32", "float16")),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" + std::get<1>(tested.param);
                         });

/// Shapes beyond what is drawn: several tiles, panels, blocks of keys and slices of threads.
struct Large {
  const char* name;
  const char* kernel;
  std::vector<std::pair<std::string, std::string>> values;
};

class LargeShapesTest : public ::testing::TestWithParam<Large> {};

TEST_P(LargeShapesTest, AgreesWithTheReference) {
  const Space space = shipped_space(GetParam().kernel);
  expect_right(space, space.problem(GetParam().values), 7);
}

const Large kLargeShapes[] = {
    {"Tiles", "matmul", {{"M", "1030"}, {"N", "2050"}, {"K", "5"}, {"EPILOGUE", "5"}}},
    {"Panels", "matmul", {{"M", "70"}, {"N", "90"}, {"K", "1100"}, {"STORAGE", "float16"}, {"WEIGHT", "bfloat16"}}},
    {"WidenedWeight", "matmul", {{"M", "9"}, {"N", "130"}, {"K", "1025"}, {"WEIGHT", "float16"}, {"EPILOGUE", "6"}}},
    {"NormalisedTiles", "matmul", {{"M", "300"}, {"N", "330"}, {"K", "515"}, {"EPILOGUE", "5"}, {"NORM", "1"}}},
    {"NormalisedPatches",
     "matmul",
     {{"M", "70"}, {"N", "90"}, {"K", "1152"}, {"EPILOGUE", "2"}, {"NORM", "2"}, {"WEIGHT", "float16x"}}},
    {"NormalisedQuarters",
     "matmul",
     {{"M", "70"}, {"N", "90"}, {"K", "1152"}, {"EPILOGUE", "3"}, {"NORM", "3"}, {"WEIGHT", "float16"}}},
    {"TurnedPatches",
     "matmul",
     {{"M", "70"}, {"N", "384"}, {"K", "515"}, {"EPILOGUE", "1"}, {"HEAD_DIM", "64"}, {"POSITIONS", "9"}}},
    {"NormalisedTurnedPatches",
     "matmul",
     {{"M", "70"},
      {"N", "384"},
      {"K", "512"},
      {"EPILOGUE", "1"},
      {"NORM", "2"},
      {"HEAD_DIM", "128"},
      {"POSITIONS", "9"},
      {"WEIGHT", "float16"}}},
    {"Vector", "matvec", {{"M", "1"}, {"N", "300"}, {"K", "6144"}, {"WEIGHT", "float16"}, {"EPILOGUE", "4"}}},
    {"PackedVector", "matvec_q", {{"M", "1"}, {"N", "300"}, {"K", "6144"}, {"WEIGHT", "q4_k"}, {"EPILOGUE", "4"}}},
    {"PackedVectors", "matvec_q", {{"M", "8"}, {"N", "98"}, {"K", "3000"}, {"WEIGHT", "q6_k"}, {"EPILOGUE", "5"}}},
    {"RoundedVector",
     "matvec_q",
     {{"M", "1"}, {"N", "300"}, {"K", "6144"}, {"WEIGHT", "q4_k"}, {"INPUT", "int8"}, {"EPILOGUE", "4"}}},
    {"RoundedVectors",
     "matvec_q",
     {{"M", "8"}, {"N", "98"}, {"K", "3072"}, {"WEIGHT", "q6_k"}, {"INPUT", "int8"}, {"EPILOGUE", "5"}}},
    {"NormedVector",
     "matvec_q",
     {{"M", "1"}, {"N", "300"}, {"K", "6144"}, {"WEIGHT", "q4_k"}, {"NORM", "1"}, {"EPILOGUE", "4"}}},
    {"NormedVectors",
     "matvec_q",
     {{"M", "8"}, {"N", "98"}, {"K", "3072"}, {"WEIGHT", "q8_0"}, {"NORM", "1"}, {"EPILOGUE", "5"}}},
    {"NormedOddVector",
     "matvec_q",
     {{"M", "1"}, {"N", "960"}, {"K", "576"}, {"WEIGHT", "q4_1"}, {"NORM", "1"}, {"EPSILON", "10000"}}},
    {"ThreeQueriesAKey", "attention_decode", {{"HEADS", "9"}, {"KV_HEADS", "3"}, {"HEAD_DIM", "64"}, {"KEYS", "700"}}},
    {"ThreeQueriesAKeyCausal",
     "attention_prefill",
     {{"HEADS", "9"}, {"KV_HEADS", "3"}, {"HEAD_DIM", "64"}, {"QUERIES", "70"}, {"KEYS", "130"}, {"CAUSAL", "1"}}},
    {"WindowAndSinks",
     "attention_sparse_prefill",
     {{"HEADS", "3"},
      {"KV_HEADS", "1"},
      {"HEAD_DIM", "64"},
      {"QUERIES", "300"},
      {"KEYS", "500"},
      {"WINDOW", "170"},
      {"SINKS", "70"}}},
    {"StridedBlocks",
     "attention_sparse_prefill",
     {{"HEADS", "4"},
      {"KV_HEADS", "2"},
      {"HEAD_DIM", "32"},
      {"QUERIES", "600"},
      {"KEYS", "1100"},
      {"BLOCK", "32"},
      {"WINDOW", "50"},
      {"SINKS", "32"},
      {"STRIDE", "3"}}},
    {"ListedBlocks",
     "attention_sparse_prefill",
     {{"HEADS", "4"},
      {"KV_HEADS", "2"},
      {"HEAD_DIM", "32"},
      {"QUERIES", "600"},
      {"KEYS", "1100"},
      {"LISTS", "2"},
      {"WIDTH", "9"}}},
    {"WindowOfACache",
     "attention_sparse_decode",
     {{"HEADS", "12"}, {"KV_HEADS", "4"}, {"HEAD_DIM", "64"}, {"KEYS", "2000"}, {"WINDOW", "500"}, {"SINKS", "33"}}},
    {"HeadsOnlyTurned",
     "qk_norm_rope",
     {{"TOKENS", "70"}, {"HEADS", "9"}, {"KV_HEADS", "3"}, {"HEAD_DIM", "64"}, {"NORM", "0"}, {"CACHE", "int8"}}},
    {"RoundedHeads",
     "attention_decode",
     {{"HEADS", "12"}, {"KV_HEADS", "4"}, {"HEAD_DIM", "128"}, {"KEYS", "700"}, {"OUTPUT", "int8"}}},
    {"PackedTiles", "matmul_q", {{"M", "300"}, {"N", "1090"}, {"K", "512"}, {"WEIGHT", "q4_k"}, {"EPILOGUE", "5"}}},
    {"PackedBytes", "matmul_q", {{"M", "40"}, {"N", "130"}, {"K", "1024"}, {"WEIGHT", "int8_row"}, {"EPILOGUE", "6"}}},
    {"CodedTiles", "matmul", {{"M", "70"}, {"N", "90"}, {"K", "1100"}, {"STORAGE", "float16"}, {"WEIGHT", "float16x"}}},
    {"CodedOddTiles", "matmul", {{"M", "9"}, {"N", "131"}, {"K", "1025"}, {"WEIGHT", "float16x"}, {"EPILOGUE", "6"}}},
    {"CodedVector", "matvec", {{"M", "1"}, {"N", "301"}, {"K", "6145"}, {"WEIGHT", "float16x"}, {"EPILOGUE", "4"}}},
    {"CodedVectors", "matvec", {{"M", "7"}, {"N", "98"}, {"K", "3000"}, {"WEIGHT", "float16x"}, {"EPILOGUE", "5"}}},
    {"CodedRows", "gather", {{"TOKENS", "77"}, {"WIDTH", "1027"}, {"VOCABULARY", "513"}, {"TABLE", "float16x"}}},
    {"Vectors", "matvec", {{"M", "8"}, {"N", "98"}, {"K", "3000"}, {"WEIGHT", "bfloat16"}, {"EPILOGUE", "5"}}},
    {"Causal",
     "attention_prefill",
     {{"HEADS", "4"}, {"KV_HEADS", "2"}, {"HEAD_DIM", "32"}, {"QUERIES", "150"}, {"KEYS", "700"}, {"CAUSAL", "1"}}},
    {"MoreQueriesThanKeys",
     "attention_prefill",
     {{"HEADS", "2"}, {"KV_HEADS", "1"}, {"HEAD_DIM", "16"}, {"QUERIES", "300"}, {"KEYS", "30"}, {"CAUSAL", "1"}}},
    {"Segments",
     "attention_prefill",
     {{"HEADS", "2"},
      {"KV_HEADS", "2"},
      {"HEAD_DIM", "16"},
      {"QUERIES", "900"},
      {"KEYS", "900"},
      {"CAUSAL", "0"},
      {"SEGMENTS", "3"},
      {"STORAGE", "float16"}}},
    {"ManyHeadsAKey",
     "attention_decode",
     {{"HEADS", "12"}, {"KV_HEADS", "1"}, {"HEAD_DIM", "128"}, {"KEYS", "1500"}, {"CACHE", "float16"}}},
    {"LargestHead", "attention_decode", {{"HEADS", "2"}, {"KV_HEADS", "2"}, {"HEAD_DIM", "256"}, {"KEYS", "513"}}},
    {"TokenToAttention",
     "attention_decode_qkv",
     {{"HEADS", "12"}, {"KV_HEADS", "4"}, {"HEAD_DIM", "128"}, {"KEYS", "700"}, {"CACHE", "int8"}}},
    {"TokenToResidualStream",
     "attention_projected",
     {{"HEADS", "12"},
      {"KV_HEADS", "4"},
      {"HEAD_DIM", "64"},
      {"KEYS", "700"},
      {"HIDDEN", "515"},
      {"WEIGHT", "float16"}}},
    {"TokenToResidualStreamPacked",
     "attention_projected",
     {{"HEADS", "12"}, {"KV_HEADS", "4"}, {"HEAD_DIM", "64"}, {"KEYS", "700"}, {"HIDDEN", "515"}, {"WEIGHT", "q4_k"}}},
    {"TokensWholeAttention",
     "attention_layer_q",
     {{"HEADS", "12"},
      {"KV_HEADS", "4"},
      {"HEAD_DIM", "64"},
      {"KEYS", "700"},
      {"HIDDEN", "515"},
      {"WEIGHT", "q4_k"},
      {"BACK", "q6_k"}}},
    {"Swiglu", "elementwise", {{"COUNT", "100003"}, {"OPERATION", "2"}, {"OUTPUT", "float16"}}},
    {"Square", "transpose", {{"ROWS", "515"}, {"COLUMNS", "300"}, {"STORAGE", "float16"}}},
};

INSTANTIATE_TEST_SUITE_P(Shapes, LargeShapesTest, ::testing::ValuesIn(kLargeShapes),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace pascaline::testing
