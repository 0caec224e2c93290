#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/process.hpp"
#include "tests/cli/program.hpp"

namespace pascaline::testing {
namespace {

using CommandTest = ProgramTest;
using nlohmann::json;

TEST_F(CommandTest, HelpOfEveryCommandHasExamples) {
  for (const char* command : {"devices", "compile", "sweep", "show", "explain", "report", "check", "completion"}) {
    const Outcome outcome = run({command, "--help"});
    EXPECT_EQ(outcome.code, 0) << command;
    EXPECT_NE(outcome.out.find("Example"), std::string::npos) << command;
  }
  EXPECT_NE(run({"--help"}).out.find("Exit codes"), std::string::npos);
  EXPECT_NE(run({"--version"}).out.find("pascaline "), std::string::npos);
}

TEST_F(CommandTest, AUsersOwnKernelGoesAllTheWay) {
  const Outcome swept = sweep({"--problem", "N=500"});
  ASSERT_EQ(swept.code, 0) << swept.err;
  EXPECT_EQ(swept.out, "");
  const json winners = json::parse(run({"show", "--db", database_, "--json"}).out);
  ASSERT_EQ(winners.size(), 1U);
  EXPECT_EQ(winners[0]["problem"], "toy N=500");
  const std::vector<std::string> place{"--kernels", folder_.string(), "--spaces", folder_.string(), "-k",
                                       "toy",       "--device",       "host"};
  const auto explain = [&](const std::string& shape) {
    std::vector<std::string> words{"explain", "--db", database_, "--json", "--problem", shape};
    words.insert(words.end(), place.begin(), place.end());
    return json::parse(run(words).out)[0]["provenance"].get<std::string>();
  };
  EXPECT_EQ(explain("N=500"), "exact");
  EXPECT_EQ(explain("N=700"), "nearest");
  EXPECT_NE(run({"report", "--db", database_}).out.find("toy N=500"), std::string::npos);
  EXPECT_NE(run({"report", "--db", database_, "--format", "csv"}).out.find("toy"), std::string::npos);
}

TEST_F(CommandTest, EveryOkTrialOfASweepWasVerified) {
  const Outcome swept = sweep();
  ASSERT_EQ(swept.code, 0) << swept.err;
  const json trials = json::parse(run({"show", "trials", "--db", database_, "--limit", "0", "--json"}).out);
  EXPECT_GE(trials.size(), 3U);
  const std::string csv = run({"report", "--db", database_, "--format", "csv"}).out;
  EXPECT_NE(csv.find("max_error"), std::string::npos);
}

TEST_F(CommandTest, ASecondSweepMeasuresNothingTwice) {
  ASSERT_EQ(sweep().code, 0);
  const int first = stored_trials();
  const Outcome again = sweep({"--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  const json summary = json::parse(again.out);
  EXPECT_EQ(summary["trials"], 0);
  EXPECT_EQ(summary["reused"], 3);
  EXPECT_GT(stored_trials(), first);  // the finals are fought again
}

TEST_F(CommandTest, DefaultWithoutADatabase) {
  const Outcome outcome = run({"explain", "--device", "host", "--kernels", folder_.string(), "--spaces",
                               folder_.string(), "-k", "toy", "--json"},
                              "export PASCALINE_DB=" + path("none.db"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)[0]["provenance"], "default");
}

TEST_F(CommandTest, CheckFindsAWriteOutOfBoundsWithItsLine) {
  const std::vector<std::string> words{"check", "--kernels", folder_.string(), "--spaces", folder_.string(),
                                       "-k",    "toy",       "--problem",      "N=1000"};
  const Outcome fine = run(words);
  EXPECT_EQ(fine.code, 0) << fine.out << fine.err;
  write("toy.cu", R"(
#ifndef BLOCK
#define BLOCK 64
#endif
extern "C" __global__ void toy(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i <= n) {
    y[i] = 2.0f;
  }
}
#ifdef PASCALINE_REFERENCE
extern "C" __global__ void toy_reference(const float* x, double* y, int n) {}
#endif
)");
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.out.find("WRITE of size 4 at toy.cu:8"), std::string::npos) << outcome.out << outcome.err;
}

TEST_F(CommandTest, JsonIsJson) {
  const json devices = json::parse(run({"devices", "--json"}).out);
  EXPECT_EQ(devices["devices"].back()["id"], "host");
  const Outcome compiled = run({"compile", "--kernels", folder_.string(), "--spaces", folder_.string(), "-k", "toy",
                                "--arch", "host", "--json"});
  EXPECT_EQ(json::parse(compiled.out)["variants"].size(), 3U);
}

TEST_F(CommandTest, CubinsOfMatmulForPascal) {
  const json devices = json::parse(run({"devices", "--json"}).out);
  int tried = 0;
  for (const json& nvrtc : devices["nvrtc"]) {
    const auto architectures = nvrtc["architectures"].get<std::vector<std::string>>();
    if (std::find(architectures.begin(), architectures.end(), "sm_61") == architectures.end()) {
      continue;
    }
    const std::string version = nvrtc["version"];
    const Outcome outcome = run({"compile", "--arch", "sm_61", "--limit", "3", "--nvrtc", version, "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json document = json::parse(outcome.out);
    EXPECT_EQ(document["version"], version);
    for (const json& variant : document["variants"]) {
      EXPECT_EQ(variant["status"], "ok");
      EXPECT_GT(variant["registers"], 16);
      EXPECT_GE(variant["ffma"], 16);
    }
    ++tried;
  }
  if (tried == 0) {
    GTEST_SKIP() << "no NVRTC for sm_61 on this machine";
  }
}

TEST_F(CommandTest, CompletionIsBash) {
  const Outcome outcome = run({"completion"});
  ASSERT_EQ(outcome.code, 0);
  write("completion.bash", outcome.out);
  EXPECT_EQ(run_process({"bash", "-n", path("completion.bash")}, std::chrono::seconds(10)).exit_code, 0);
  const ProcessResult words =
      run_process({"bash", "-c",
                   "source " + path("completion.bash") +
                       "; COMP_WORDS=(pascaline sw); COMP_CWORD=1; _pascaline; echo ${COMPREPLY[*]}"},
                  std::chrono::seconds(10));
  EXPECT_EQ(words.output, "sweep\n");
}

}  // namespace
}  // namespace pascaline::testing
