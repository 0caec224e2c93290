#include "tests/cli/program.hpp"

#include <unistd.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/paths.hpp"
#include "core/process.hpp"
#include "db/store.hpp"

namespace pascaline::testing {
namespace {

constexpr const char* kKernel = R"(
#ifndef BLOCK
#define BLOCK 64  // threads of a block
#endif
extern "C" __global__ void toy(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) {
    y[i] = 2.0f * x[i];
  }
}
#ifdef PASCALINE_REFERENCE
extern "C" __global__ void toy_reference(const float* __restrict__ x, double* __restrict__ y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) {
    y[i] = 2.0 * x[i];
  }
}
#endif
)";

constexpr const char* kSpace = R"TOY({
  "schema": 1, "kernel": "toy",
  "dimensions": [{"name": "N", "example": 1000}],
  "types": [],
  "parameters": [{"name": "BLOCK", "values": [32, 64, 128], "default": 64}],
  "constraints": [{"require": "BLOCK <= device_max_threads_per_block", "because": "a block has a limit"}],
  "launch": {"function": "toy", "block": ["BLOCK"], "grid": ["ceil_div(N, BLOCK)"]},
  "arguments": [{"name": "x", "buffer": "float32", "access": "in", "extent": "N"},
                {"name": "y", "buffer": "float32", "access": "out", "extent": "N"},
                {"name": "n", "scalar": "int32", "value": "N"}],
  "reference": {"kernel": {"function": "toy_reference", "block": [64], "grid": ["ceil_div(N, 64)"]}},
  "tolerance": {"float32": 1e-6},
  "work": {"flops": "N", "bytes": "8 * N"}
})TOY";

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) {
    out += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return out + "'";
}

}  // namespace

ProgramTest::ProgramTest() {
  std::string pattern = (std::filesystem::temp_directory_path() / "pascaline-cli-XXXXXX").string();
  folder_ = ::mkdtemp(pattern.data());
  database_ = path("tuned.db");
  write("toy.cu", kKernel);
  write("toy.json", kSpace);
}

ProgramTest::~ProgramTest() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Outcome ProgramTest::run(const std::vector<std::string>& words, const std::string& before) const {
  std::string line = before + (before.empty() ? "" : "; ") + "exec " + quoted(PASCALINE_PROGRAM);
  for (const std::string& word : words) {
    line += " " + quoted(word);
  }
  line += " >" + quoted(path("out")) + " 2>" + quoted(path("err"));
  const ProcessResult result =
      run_process({"bash", "-c", line}, std::chrono::minutes(3), {{"PASCALINE_CACHE_DIR", path("cache")}});
  return {result.exit_code, read_file(path("out")), read_file(path("err"))};
}

Outcome ProgramTest::sweep(const std::vector<std::string>& more) const {
  std::vector<std::string> words{"sweep",
                                 "--kernels",
                                 folder_.string(),
                                 "--spaces",
                                 folder_.string(),
                                 "-k",
                                 "toy",
                                 "--device",
                                 "host",
                                 "--db",
                                 database_,
                                 "--rounds",
                                 "2",
                                 "--sample-budget-ms",
                                 "50",
                                 "--trials",
                                 "3",
                                 "--quiet"};
  words.insert(words.end(), more.begin(), more.end());
  return run(words);
}

void ProgramTest::change_space(const std::string& from, const std::string& to) const {
  std::string text = kSpace;
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  write("toy.json", text.replace(at, from.size(), to));
}

void ProgramTest::write(const std::string& name, const std::string& text) const {
  write_file_atomically(folder_ / name, text);
}

int ProgramTest::stored_trials() const {
  return static_cast<int>(Store(database_, OpenMode::read_only).trials({}).size());
}

::testing::AssertionResult is_one_line_fault(const Outcome& outcome, const std::vector<std::string>& pieces) {
  const auto lines = std::count(outcome.err.begin(), outcome.err.end(), '\n');
  const auto told = [&](const std::string& piece) { return outcome.err.find(piece) != std::string::npos; };
  if (outcome.code == 1 && lines == 1 && outcome.err.starts_with("pascaline: ") &&
      std::all_of(pieces.begin(), pieces.end(), told)) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "exit code " << outcome.code << ", stderr: " << outcome.err;
}

}  // namespace pascaline::testing
