#include <gtest/gtest.h>

#include "runtime/device/compile.hpp"
#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

/// The program on a kernel `own`, whose results are compared with its default's.
class CliReferenceTest : public CliTest {
 protected:
  void write(const std::string& source, nlohmann::json change = nlohmann::json::object()) const {
    nlohmann::json space = nlohmann::json::parse(R"json({
      "schema": 1, "kernel": "own", "dimensions": [{"name": "N", "example": 256}], "types": [],
      "parameters": [{"name": "BLOCK", "values": [32, 64, 128, 256], "default": 128}],
      "launch": {"function": "own", "block": ["BLOCK"], "grid": ["ceil_div(N, BLOCK)"]},
      "arguments": [
        {"name": "x", "buffer": "float32", "access": "in", "extent": "N", "fill": "uniform"},
        {"name": "out", "buffer": "float32", "access": "out", "extent": "N"},
        {"name": "n", "scalar": "int32", "value": "N"}],
      "reference": {"default": true}, "tolerance": {"float32": 1e-5}, "work": {"flops": "N", "bytes": "8 * N"}})json");
    space.merge_patch(change);
    write_file_atomically(folder_ / "own.cu", source);
    write_file_atomically(folder_ / "own.json", space.dump());
  }
  [[nodiscard]] std::vector<std::string> on_own(const std::string& command,
                                                const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{command, "--kernels", kernels_, "--spaces", kernels_, "--kernel", "own"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] ProgramResult sweep_own() const {
    return run(on_own("sweep", {"--device", "emulator", "--db", database_, "--jobs", "2", "--searcher", "exhaustive",
                                "--warm-cache", "--min-samples", "3", "--max-samples", "5", "--rounds", "2"}));
  }
};

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(CliReferenceTest, CheckOfAReferenceThatWritesHalfIsRefused) {
  write(
      "extern \"C\" __global__ void own(const float* x, float* out, int n) {\n"
      "  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n / 2) out[i] = x[i];\n}\n");
  const ProgramResult checked = run(on_own("check"));
  EXPECT_EQ(checked.exit_code, 3);
  expect_has(checked.out, "the reference, the kernel with BLOCK=128, does not write out[128], ");
  const ProgramResult swept = sweep_own();
  EXPECT_NE(swept.exit_code, 0);
  expect_has(swept.out + swept.error, "the reference, the kernel with BLOCK=128, does not write out[128], ");
}

TEST_F(CliReferenceTest, CheckOfAShapeThatExcludesTheDefaultComparesWithTheBaseline) {
  write(
      "extern \"C\" __global__ void own(const float* x, float* out, int n) {\n"
      "  int i = blockIdx.x * BLOCK + threadIdx.x;\n"
      "  if (BLOCK > n) { if (i == 0) out[i] = x[n]; return; }\n  if (i < n) out[i] = x[i];\n}\n",
      {{"constraints", {{{"require", "BLOCK <= N"}, {"because", "a block has no more threads than elements"}}}}});
  const ProgramResult checked = run(on_own("check", {"--problem", "N=64", "--limit", "2"}));
  EXPECT_EQ(checked.exit_code, 0) << checked.out;
  const ProgramResult swept = run(on_own("sweep", {"--device", "emulator", "--db", database_, "--problem", "N=64",
                                                   "--searcher", "exhaustive", "--rounds", "2", "--json"}));
  EXPECT_EQ(swept.exit_code, 0) << swept.error;
  EXPECT_EQ(json_of(swept)["ok"], 2) << swept.out;
}

TEST_F(CliReferenceTest, CheckOfAWrongDefaultSaysThatTheOthersAgree) {
  write(
      "extern \"C\" __global__ void own(const float* x, float* out, int n) {\n"
      "  int i = blockIdx.x * BLOCK + threadIdx.x;\n"
      "  if (i < n) out[i] = 2.0f * x[i] + (BLOCK == 128 ? 0.5f : 1e-8f * BLOCK);\n}\n");
  const std::string doubt =
      "own N=256: 3 of 4 configurations agree with each other and not with the reference, the default configuration, "
      "which is probably wrong";
  expect_has(run(on_own("check", {"--limit", "4"})).out, doubt);
  const ProgramResult swept = sweep_own();
  expect_has(swept.out + swept.error, doubt);
}

TEST_F(CliReferenceTest, CheckOfADefaultThatDoesNotCompileComparesWithTheClosestThatDoes) {
  write(
      "extern \"C\" __global__ void own(const float* x, float* out, int n) {\n"
      "  static_assert(BLOCK != 128, \"not 128\");\n"
      "  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) out[i] = 2.0f * x[i];\n}\n");
  const std::string note = "results are compared with those of BLOCK=32 instead";
  const auto times = [&](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = text.find(note); at != std::string::npos; at = text.find(note, at + 1)) {
      ++count;
    }
    return count;
  };
  const ProgramResult checked = run(on_own("check", {"--limit", "4"}));
  EXPECT_EQ(checked.exit_code, 3) << checked.out;
  expect_has(checked.out, "not 128");
  EXPECT_EQ(times(checked.out), 1U) << checked.out;
  const ProgramResult swept = sweep_own();
  EXPECT_EQ(swept.exit_code, 0) << swept.out << swept.error;
  EXPECT_EQ(times(swept.out), 1U) << swept.out;
}

TEST_F(CliReferenceTest, CheckOfCodeThatNothingCompilesSaysWhyOfTheDefault) {
  write("extern \"C\" __global__ void own(const float* x, float* out, int n) { nothing }\n");
  EXPECT_EQ(run(on_own("check", {"--limit", "4"})).exit_code, 3);
  EXPECT_NE(sweep_own().exit_code, 0);
}

// Two configurations of the same code are two that agree, as `check` counts them.
TEST_F(CliReferenceTest, CheckAndSweepCountDuplicatesOfWrongResultsAlike) {
  write(
      "extern \"C\" __global__ void own(const float* x, float* out, int n) {\n"
      "  int i = blockIdx.x * BLOCK + threadIdx.x;\n"
      "  if (i < n) out[i] = KIND == 0 ? x[i] : 2.0f * x[i];\n}\n",
      {{"parameters",
        {{{"name", "BLOCK"}, {"values", {32}}, {"default", 32}},
         {{"name", "KIND"}, {"values", {0, 1, 2, 3}}, {"default", 0}}}}});
  const std::string doubt = "own N=256: 3 of 4 configurations agree with each other and not with the reference";
  expect_has(run(on_own("check", {"--limit", "4"})).out, doubt);
  const ProgramResult swept = sweep_own();
  expect_has(swept.out + swept.error, doubt);
}

TEST_F(CliReferenceTest, CheckOfAReadOfUnwrittenSharedMemoryFindsIt) {
  for (const char* type : {"float", "int"}) {
    for (const char* write : {"", "  if (n == 7) words[threadIdx.x] = 0;\n"}) {  // compilers may take both for zeros
      this->write(std::string("extern \"C\" __global__ void own(const float* x, float* out, int n) {\n  __shared__ ") +
                  type + " words[BLOCK];\n  int i = blockIdx.x * BLOCK + threadIdx.x;\n" + write +
                  "  if (i < n) out[i] = x[i] + words[threadIdx.x];\n}\n");
      const ProgramResult checked = run(on_own("check", {"--limit", "2"}));
      EXPECT_EQ(checked.exit_code, 3) << checked.out;
      expect_has(checked.out, "wrong_result: ");
    }
  }
  this->write(
      "extern \"C\" __global__ void own(const float* x, float* out, int n) {\n  extern __shared__ int words[];\n"
      "  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) out[i] = x[i] + words[threadIdx.x];\n}\n",
      {{"launch", {{"shared_bytes", "4 * BLOCK"}}}});
  EXPECT_EQ(run(on_own("check")).exit_code, 3);
}

TEST_F(CliReferenceTest, CheckThatCannotFailIsToldOnce) {
  const std::string source =
      "extern \"C\" __global__ void own(const float* x, float* out, int n) {\n"
      "  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) out[i] = 2.0f * x[i];\n}\n";
  const auto expect_told = [&](const std::string& told) {
    const ProgramResult checked = run(on_own("check", {"--limit", "4", "--problem", "N=64", "--problem", "N=96"}));
    EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.error;
    const std::size_t first = checked.error.find(told);
    EXPECT_NE(first, std::string::npos) << checked.error;
    EXPECT_EQ(checked.error.find(told, first + 1), std::string::npos) << "once";
    const ProgramResult swept = sweep_own();
    expect_has(swept.out + swept.error, "own N=256: " + told);
  };
  write(source, {{"tolerance", {{"float32", 2.0}}}});
  expect_told("the tolerance of output 'out' is so large that a kernel that writes only zeros passes");
  write(source, {{"arguments",
                  {{{"name", "x"}, {"buffer", "float32"}, {"access", "in"}, {"extent", "N"}, {"fill", "zero"}},
                   {{"name", "out"}, {"buffer", "float32"}, {"access", "out"}, {"extent", "N"}},
                   {{"name", "n"}, {"scalar", "int32"}, {"value", "N"}}}}});
  expect_told("the reference's output 'out' is 0 everywhere, so a kernel that writes only zeros passes");
  write(source);
  const ProgramResult checked = run(on_own("check"));
  EXPECT_EQ(checked.error.find("passes"), std::string::npos) << checked.error;
}

TEST_F(CliReferenceTest, CheckOfOtherArgumentsIsRefusedAsByEveryCompiler) {
  write(
      "extern \"C\" __global__ void own(const float* x, float* out, long long n) {\n"
      "  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) out[i] = x[i];\n}\n");
  const std::string reason =
      "own.cu: error: own takes long long as its argument 3, the search space gives 'n', a scalar of int32";
  expect_has(run(on_own("check")).out, reason);
  const ProgramResult swept = sweep_own();
  EXPECT_NE(swept.exit_code, 0);
  expect_has(swept.out + swept.error, reason);
  if (!find_nvrtc().empty()) {
    const ProgramResult compiled = run(on_own("compile", {"--arch", "sm_61"}));
    EXPECT_EQ(compiled.exit_code, 3);
    expect_has(compiled.out + compiled.error, reason);
  }
}

TEST_F(CliReferenceTest, CheckOfAReferenceKernelComparesItsArgumentsToo) {
  write(
      "extern \"C\" __global__ void own(const float* x, float* out, int n) {\n"
      "  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) out[i] = x[i];\n}\n"
      "extern \"C\" __global__ void naive(const float* x, float* out, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) out[i] = x[i];\n}\n",
      {{"reference", {{"default", nullptr}, {"kernel", {{"function", "naive"}, {"block", {256}}, {"grid", {1}}}}}}});
  expect_has(run(on_own("check")).out,
             "naive takes float* as its argument 2, the search space gives 'out', a buffer of float64 to write to");
}

}  // namespace
}  // namespace pascaline::testing
