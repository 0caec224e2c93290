#include <gtest/gtest.h>

#include <map>

#include "runtime/device/compile.hpp"
#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

/// The program on kernels whose results are compared with their defaults'. `check` looks at each, and one sweep at all.
class CliReferenceTest : public CliTest {
 protected:
  static constexpr const char* kWritesHalf = "the reference, the kernel with BLOCK=128, does not write out[128], ";
  static constexpr const char* kComparedWithAnother = "results are compared with those of BLOCK=32 instead";
  static constexpr const char* kLooseTolerance =
      "the tolerance of output 'out' is so large that a kernel that writes only zeros passes";
  static constexpr const char* kOnlyZeros =
      "the reference's output 'out' is 0 everywhere, so a kernel that writes only zeros passes";
  static constexpr const char* kOtherArgument =
      "wide.cu: error: wide takes long long as its argument 3, the search space gives 'n', a scalar of int32";

  void write_source(const std::string& name, const std::string& source, const nlohmann::json& change = {}) const {
    nlohmann::json space = nlohmann::json::parse(R"json({
      "schema": 1, "dimensions": [{"name": "N", "example": 256}], "types": [],
      "parameters": [{"name": "BLOCK", "values": [32, 64, 128, 256], "default": 128}],
      "launch": {"block": ["BLOCK"], "grid": ["ceil_div(N, BLOCK)"]},
      "arguments": [
        {"name": "x", "buffer": "float32", "access": "in", "extent": "N", "fill": "uniform"},
        {"name": "out", "buffer": "float32", "access": "out", "extent": "N"},
        {"name": "n", "scalar": "int32", "value": "N"}],
      "reference": {"default": true}, "tolerance": {"float32": 1e-5}, "work": {"flops": "N", "bytes": "8 * N"}})json");
    space["kernel"] = space["launch"]["function"] = name;
    if (!change.is_null()) {
      space.merge_patch(change);
    }
    write_file_atomically(folder_ / (name + ".cu"), source);
    write_file_atomically(folder_ / (name + ".json"), space.dump());
  }
  // A thread computes its element, `i`, in `body`.
  void write(const std::string& name, const std::string& body, const nlohmann::json& change = {}) const {
    write_source(name,
                 "extern \"C\" __global__ void " + name +
                     "(const float* x, float* out, int n) {\n  int i = blockIdx.x * BLOCK + threadIdx.x;\n  " + body +
                     "\n}\n",
                 change);
  }
  void write_halved() const { write("halved", "if (i < n / 2) out[i] = x[i];"); }
  void write_small() const {
    write("small", "if (BLOCK > n) { if (i == 0) out[i] = x[n]; return; }\n  if (i < n) out[i] = x[i];",
          {{"dimensions", {{{"name", "N"}, {"example", 64}}}},
           {"constraints", {{{"require", "BLOCK <= N"}, {"because", "a block has no more threads than elements"}}}}});
  }
  void write_wrong() const {
    write("wrong", "if (i < n) out[i] = 2.0f * x[i] + (BLOCK == 128 ? 0.5f : 1e-8f * BLOCK);");
  }
  void write_unbuilt() const {
    write("unbuilt", "static_assert(BLOCK != 128, \"not 128\");\n  if (i < n) out[i] = 2.0f * x[i];");
  }
  void write_nothing() const { write("nothing", "nothing"); }
  // Two configurations of the same code are two that agree.
  void write_same() const {
    write("same", "if (i < n) out[i] = KIND == 0 ? x[i] : 2.0f * x[i];",
          {{"parameters",
            {{{"name", "BLOCK"}, {"values", {32}}, {"default", 32}},
             {{"name", "KIND"}, {"values", {0, 1, 2, 3}}, {"default", 0}}}}});
  }
  void write_doubling(const std::string& name, const nlohmann::json& change = {}) const {
    write(name, "if (i < n) out[i] = 2.0f * x[i];", change);
  }
  void write_loose() const { write_doubling("loose", {{"tolerance", {{"float32", 2.0}}}}); }
  void write_zero() const {
    write_doubling("zero",
                   {{"arguments",
                     {{{"name", "x"}, {"buffer", "float32"}, {"access", "in"}, {"extent", "N"}, {"fill", "zero"}},
                      {{"name", "out"}, {"buffer", "float32"}, {"access", "out"}, {"extent", "N"}},
                      {{"name", "n"}, {"scalar", "int32"}, {"value", "N"}}}}});
  }
  void write_wide() const {
    write_source("wide",
                 "extern \"C\" __global__ void wide(const float* x, float* out, long long n) {\n"
                 "  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) out[i] = x[i];\n}\n");
  }
  [[nodiscard]] static std::string doubt_of(const std::string& name) {
    return name + " N=256: 3 of 4 configurations agree with each other and not with the reference";
  }
  [[nodiscard]] ProgramResult run_on(const std::string& name, const std::string& command,
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{command, "--kernels", kernels_, "--spaces", kernels_, "--kernel", name};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

void expect_once(const std::string& text, const std::string& part) {
  expect_has(text, part);
  EXPECT_EQ(text.find(part), text.rfind(part)) << text;
}

TEST_F(CliReferenceTest, ASweepSaysWhatCheckSaysOfEachKernel) {
  write_halved();
  write_small();
  write_wrong();
  write_unbuilt();
  write_nothing();
  write_same();
  write_loose();
  write_zero();
  write_wide();
  std::vector<std::string> words{"sweep",    "--kernels",     kernels_,     "--spaces",     kernels_,
                                 "--device", "emulator",      "--db",       database_,      "--jobs",
                                 "2",        "--searcher",    "exhaustive", "--warm-cache", "--min-samples",
                                 "3",        "--max-samples", "5",          "--rounds",     "2"};
  for (const char* name : {"halved", "small", "wrong", "unbuilt", "nothing", "same", "loose", "zero", "wide"}) {
    words.insert(words.end(), {"--kernel", name});
  }
  const ProgramResult swept = run(words);
  EXPECT_EQ(swept.exit_code, 0) << swept.error;
  expect_has(swept.out, std::string("halved N=256: ") + kWritesHalf);
  expect_has(swept.out, doubt_of("wrong") + ", the default configuration, which is probably wrong");
  expect_once(swept.out, kComparedWithAnother);
  expect_has(swept.out, "the default is not usable: compile_failed: nothing.cu:");
  expect_has(swept.out, doubt_of("same"));
  expect_has(swept.out, std::string("loose N=256: ") + kLooseTolerance);
  expect_has(swept.out, std::string("zero N=256: ") + kOnlyZeros);
  expect_has(swept.out, kOtherArgument);
  std::map<std::string, int> usable;
  for (const StoredTrial& trial : Store(database_, OpenMode::read_only).trials({})) {
    usable[trial.trial.problem.kernel] +=
        trial.trial.stage == TrialStage::search && has_time(trial.trial.status) ? 1 : 0;
  }
  EXPECT_EQ(usable["small"], 2) << "compared with the baseline";
  EXPECT_GE(usable["unbuilt"], 1);
  EXPECT_EQ(usable["halved"] + usable["nothing"] + usable["wide"], 0);
}

TEST_F(CliReferenceTest, CheckOfAReferenceThatWritesHalfIsRefused) {
  write_halved();
  const ProgramResult checked = run_on("halved", "check");
  EXPECT_EQ(checked.exit_code, 3);
  expect_has(checked.out, kWritesHalf);
}

TEST_F(CliReferenceTest, CheckOfAShapeThatExcludesTheDefaultComparesWithTheBaseline) {
  write_small();
  const ProgramResult checked = run_on("small", "check", {"--problem", "N=64", "--limit", "2"});
  EXPECT_EQ(checked.exit_code, 0) << checked.out;
}

TEST_F(CliReferenceTest, CheckOfAWrongDefaultSaysThatTheOthersAgree) {
  write_wrong();
  expect_has(run_on("wrong", "check", {"--limit", "4"}).out,
             doubt_of("wrong") + ", the default configuration, which is probably wrong");
}

TEST_F(CliReferenceTest, CheckOfADefaultThatDoesNotCompileComparesWithTheClosestThatDoes) {
  write_unbuilt();
  const ProgramResult checked = run_on("unbuilt", "check", {"--limit", "4"});
  EXPECT_EQ(checked.exit_code, 3) << checked.out;
  expect_has(checked.out, "not 128");
  expect_once(checked.out, kComparedWithAnother);
}

TEST_F(CliReferenceTest, CheckOfCodeThatNothingCompilesSaysWhyOfTheDefault) {
  write_nothing();
  EXPECT_EQ(run_on("nothing", "check", {"--limit", "4"}).exit_code, 3);
}

TEST_F(CliReferenceTest, CheckCountsDuplicatesOfWrongResults) {
  write_same();
  expect_has(run_on("same", "check", {"--limit", "4"}).out, doubt_of("same"));
}

TEST_F(CliReferenceTest, CheckOfAReadOfUnwrittenSharedMemoryFindsIt) {
  const std::string sum = "if (i < n) out[i] = x[i] + words[threadIdx.x];";
  for (const std::string type : {"float", "int"}) {
    for (const std::string some : {"", "if (n == 7) words[threadIdx.x] = 0;\n"}) {  // compilers may take both for zeros
      write("own", "__shared__ " + type + " words[BLOCK];\n" + some + sum);
      const ProgramResult checked = run_on("own", "check", {"--limit", "2"});
      EXPECT_EQ(checked.exit_code, 3) << checked.out;
      expect_has(checked.out, "wrong_result: ");
    }
  }
  write("own", "extern __shared__ int words[];\n" + sum, {{"launch", {{"shared_bytes", "4 * BLOCK"}}}});
  EXPECT_EQ(run_on("own", "check").exit_code, 3);
}

TEST_F(CliReferenceTest, CheckThatCannotFailIsToldOnce) {
  const std::vector<std::string> two{"--limit", "4", "--problem", "N=64", "--problem", "N=96"};
  const auto expect_reported_once = [&](const std::string& name, const std::string& report) {
    const ProgramResult checked = run_on(name, "check", two);
    EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.error;
    expect_once(checked.error, report);
  };
  write_loose();
  expect_reported_once("loose", kLooseTolerance);
  write_zero();
  expect_reported_once("zero", kOnlyZeros);
  write_doubling("own");
  const ProgramResult checked = run_on("own", "check");
  EXPECT_EQ(checked.error.find("passes"), std::string::npos) << checked.error;
}

TEST_F(CliReferenceTest, CheckOfOtherArgumentsIsRefusedAsByEveryCompiler) {
  write_wide();
  expect_has(run_on("wide", "check").out, kOtherArgument);
  if (!find_nvrtc().empty()) {
    const ProgramResult compiled = run_on("wide", "compile", {"--arch", "sm_61"});
    EXPECT_EQ(compiled.exit_code, 3);
    expect_has(compiled.out + compiled.error, kOtherArgument);
  }
}

TEST_F(CliReferenceTest, CheckOfAReferenceKernelComparesItsArgumentsToo) {
  write_source(
      "own",
      "extern \"C\" __global__ void own(const float* x, float* out, int n) {\n"
      "  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) out[i] = x[i];\n}\n"
      "extern \"C\" __global__ void naive(const float* x, float* out, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) out[i] = x[i];\n}\n",
      {{"reference", {{"default", nullptr}, {"kernel", {{"function", "naive"}, {"block", {256}}, {"grid", {1}}}}}}});
  expect_has(run_on("own", "check").out,
             "naive takes float* as its argument 2, the search space gives 'out', a buffer of float64 to write to");
}

}  // namespace
}  // namespace pascaline::testing
