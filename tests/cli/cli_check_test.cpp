#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/device/compile.hpp"
#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

/// `check` on a kernel `own` of this source, compared with its default unless `change` says otherwise.
class CliCheckTest : public CliTest {
 protected:
  const ProgramSetting no_nvrtc_{{{"PASCALINE_NVRTC", "/nonexistent/libnvrtc.so"}}};

  static bool has_nvrtc() {
    const std::vector<NvrtcInfo> found = find_nvrtc();
    return std::any_of(found.begin(), found.end(), [](const NvrtcInfo& info) {
      return std::find(info.architectures.begin(), info.architectures.end(), "sm_61") != info.architectures.end();
    });
  }
  void write(const std::string& source, const nlohmann::json& change = nlohmann::json::object()) const {
    nlohmann::json space = nlohmann::json::parse(R"json({
      "schema": 1, "kernel": "own", "dimensions": [{"name": "N", "example": 256}], "types": [],
      "parameters": [{"name": "BLOCK", "values": [32, 64, 128], "default": 128}],
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
  // `head`, and on the next line a kernel that writes this expression of its element `i`.
  void write_kernel(const std::string& head, const std::string& value) const {
    write(head +
          "\nextern \"C\" __global__ void own(const float* x, float* out, int n) {\n"
          "  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) out[i] = " +
          value + ";\n}\n");
  }
  [[nodiscard]] ProgramResult check(const std::vector<std::string>& more = {},
                                    const ProgramSetting& setting = {}) const {
    std::vector<std::string> words{"check", "--kernels", kernels_, "--spaces", kernels_, "--kernel", "own"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, setting);
  }
  static void expect_verdict(const ProgramResult& checked, const std::vector<std::string>& parts) {
    EXPECT_EQ(checked.exit_code, 3) << checked.out << checked.error;
    for (const std::string& part : parts) {
      EXPECT_NE(checked.out.find(part), std::string::npos) << part << " in " << checked.out;
    }
  }
};

struct HostOnly {
  const char* head;
  const char* value;
  const char* reason;
};

TEST_F(CliCheckTest, WhatNvrtcRefusesIsAFault) {
  if (!has_nvrtc()) {
    GTEST_SKIP() << "no NVRTC for sm_61";
  }
  const HostOnly kernels[] = {
      {"float twice(float v) { return 2 * v; }", "twice(x[i])", "own.cu("},
      {"static const char* names[] = {\"a\", \"b\"};", "x[i] + names[i % 2][0]", "own.cu("},
      {"#include <vector>", "x[i]", "own.cu(1): "},
      {"#include <iostream>", "x[i]", "own.cu(1): "},
      {"__constant__ float table[20000];", "x[i] + table[i]", "too much global constant data"},
  };
  for (const HostOnly& kernel : kernels) {
    write_kernel(kernel.head, kernel.value);
    expect_verdict(check(), {"\n    compile_failed: for sm_61 with nvrtc ", kernel.reason});
    EXPECT_EQ(check({}, no_nvrtc_).exit_code, 0) << kernel.head;
  }
  const nlohmann::json rows = json_of(check({"--json", "--limit", "3"}));
  ASSERT_EQ(rows.size(), 3U);
  for (const nlohmann::json& row : rows) {
    EXPECT_FALSE(row["ok"].get<bool>());
    EXPECT_TRUE(row["result"].get<std::string>().starts_with("compile_failed: for sm_61 with nvrtc ")) << row;
  }
}

TEST_F(CliCheckTest, ARefusalEndsARunThatHangs) {
  if (!has_nvrtc()) {
    GTEST_SKIP() << "no NVRTC for sm_61";
  }
  write_kernel("float wait(const volatile float* v) { while (*v < 2) {} return *v; }", "wait(x)");
  expect_verdict(check(), {"compile_failed: for sm_61 with nvrtc "});
}

TEST_F(CliCheckTest, AReferenceThatNvrtcRefusesIsAFaultOfEveryProblem) {
  if (!has_nvrtc()) {
    GTEST_SKIP() << "no NVRTC for sm_61";
  }
  write(
      "extern \"C\" __global__ void own(const float* x, float* out, int n) {\n"
      "  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) out[i] = 2 * x[i];\n}\n"
      "#ifdef PASCALINE_REFERENCE\ndouble twice(double v) { return 2 * v; }\n"
      "extern \"C\" __global__ void naive(const float* x, double* out, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) out[i] = twice(x[i]);\n}\n#endif\n",
      {{"reference",
        {{"default", nullptr}, {"kernel", {{"function", "naive"}, {"block", {64}}, {"grid", {"ceil_div(N, 64)"}}}}}}});
  const ProgramResult checked = check({"--problem", "N=100", "--problem", "N=101", "--limit", "2"});
  expect_verdict(checked, {"own N=100  BLOCK=128\n", "own N=101  BLOCK=128\n", "rejected: for sm_61 with nvrtc ",
                           "the reference kernel 'naive' does not compile: own.cu("});
  EXPECT_EQ(checked.out.find("\n    ok\n"), std::string::npos) << checked.out;
}

TEST_F(CliCheckTest, WithoutNvrtcTheLastLineSaysThatNothingWasCompiled) {
  write_kernel("", "x[i]");
  const std::string line = "not compiled for sm_61: no NVRTC ";
  const std::vector<std::string> two{"--problem", "N=100", "--problem", "N=101"};
  const ProgramResult checked = check(two, no_nvrtc_);
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.error;
  const std::size_t at = checked.out.find(line);
  ASSERT_NE(at, std::string::npos) << checked.out;
  EXPECT_EQ(checked.out.find('\n', at), checked.out.size() - 1) << checked.out;
  const ProgramResult as_json = check({"--json"}, no_nvrtc_);
  EXPECT_EQ(json_of(as_json).size(), 1U);
  EXPECT_TRUE(as_json.error.starts_with(line)) << as_json.error;
  if (has_nvrtc()) {
    EXPECT_EQ(check(two).out, checked.out.substr(0, at)) << "it was compiled";
  }
}

// Each of them alone would fit a block.
TEST_F(CliCheckTest, StaticAndDynamicSharedMemoryBeyondTheLimitIsRejected) {
  write(
      "extern \"C\" __global__ void own(const float* x, float* out, int n) {\n"
      "  __shared__ float fixed[11 * 1024];\n  extern __shared__ float given[];\n"
      "  int i = blockIdx.x * BLOCK + threadIdx.x;\n  fixed[threadIdx.x] = given[threadIdx.x] = i < n ? x[i] : 0;\n"
      "  __syncthreads();\n  if (i < n) out[i] = fixed[threadIdx.x ^ 1] + given[threadIdx.x];\n}\n",
      {{"launch", {{"shared_bytes", "64 * BLOCK"}}}});
  for (const ProgramSetting& setting : {ProgramSetting{}, no_nvrtc_}) {
    expect_verdict(check({}, setting), {"rejected: ", "53248 bytes of shared memory per block"});
    expect_verdict(check({"--set", "BLOCK=32"}, setting),
                   {"rejected: ", "the reference", "cannot be launched: 53248 bytes of shared memory per block"});
  }
}

/// Checks kernels that read a variable of their file.
class CliSymbolTest : public CliCheckTest {
 protected:
  // Does what `write_kernel` does, with a buffer of four elements for the variable.
  void write_with(const std::string& variable, const std::string& head, const std::string& value) const {
    write_kernel(head, value);
    nlohmann::json space = nlohmann::json::parse(read_file(folder_ / "own.json"));
    space["arguments"].push_back(
        {{"name", "weights"}, {"buffer", "float32"}, {"access", "in"}, {"extent", 4}, {"symbol", variable}});
    space["reference"] = {{"kernel", {{"function", "plain"}, {"block", {32}}, {"grid", {"ceil_div(N, 32)"}}}}};
    write_file_atomically(folder_ / "own.json", space.dump());
    write_file_atomically(folder_ / "own.cu",
                          read_file(folder_ / "own.cu") +
                              "#ifdef PASCALINE_REFERENCE\n"
                              "extern \"C\" __global__ void plain(const float* x, double* out, int n) {\n"
                              "  int i = blockIdx.x * 32 + threadIdx.x;\n  if (i < n) out[i] = (double)x[i] * " +
                              variable + "[i % 4];\n}\n#endif\n");
  }
};

TEST_F(CliSymbolTest, ABufferIsCopiedToTheVariable) {
  for (const char* qualifier : {"__constant__", "__device__"}) {
    write_with("taps", fmt::format("{} float taps[4];", qualifier), "x[i] * taps[i % 4]");
    const ProgramResult checked = check({}, no_nvrtc_);
    EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.error;
  }
  write_with("taps", "__constant__ float taps[4];", "x[i] * (BLOCK == 64 ? taps[i % 4] : given[i % 4])");
  nlohmann::json both = nlohmann::json::parse(read_file(folder_ / "own.json"));
  both["arguments"][3]["argument"] = true;
  write_file_atomically(folder_ / "own.json", both.dump());
  std::string source = read_file(folder_ / "own.cu");
  for (std::size_t at = source.find("int n)"); at != std::string::npos; at = source.find("int n)", at + 1)) {
    source.replace(at, 6, "int n, const float* given)");
  }
  write_file_atomically(folder_ / "own.cu", source);
  const ProgramResult checked = check({}, no_nvrtc_);
  EXPECT_EQ(checked.exit_code, 0) << "one is the copy of the other: " << checked.out << checked.error;
  write_with("filters::taps", "namespace filters { __constant__ float taps[4]; }", "x[i] * filters::taps[i % 4]");
  EXPECT_EQ(check().exit_code, 0);
}

TEST_F(CliSymbolTest, AConfigurationThatReadsOtherValuesIsWrong) {
  write_with("taps", "__constant__ float taps[4];", "x[i] * taps[(i + (BLOCK == 64)) % 4]");
  EXPECT_EQ(check({}, no_nvrtc_).exit_code, 0);
  expect_verdict(check({"--set", "BLOCK=64"}, no_nvrtc_), {"wrong_result"});
}

TEST_F(CliSymbolTest, AVariableThatIsNotThereIsNamed) {
  for (const char* head : {"__constant__ float other[4];\n#define taps other", "__constant__ float taps[3];"}) {
    write_with("taps", head, "x[i] * taps[i % 3]");
    expect_verdict(check({}, no_nvrtc_), {"has no variable 'taps' that is as large as its buffer"});
  }
}

TEST_F(CliCheckTest, AScalarMayBeAFraction) {
  write(
      "extern \"C\" __global__ void own(const float* x, float* out, float scale, double more) {\n"
      "  int i = blockIdx.x * BLOCK + threadIdx.x;\n"
      "  if (i < 256) out[i] = scale == 0.1f && more == -2.25 ? x[i] : (float)BLOCK;\n}\n");
  nlohmann::json space = nlohmann::json::parse(read_file(folder_ / "own.json"));
  space["arguments"][2] = {{"name", "scale"}, {"scalar", "float32"}, {"value", 0.1}};
  space["arguments"].push_back({{"name", "more"}, {"scalar", "float64"}, {"value", -2.25}});
  write_file_atomically(folder_ / "own.json", space.dump());
  const ProgramResult checked = check({}, no_nvrtc_);
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.error;
}

}  // namespace
}  // namespace pascaline::testing
