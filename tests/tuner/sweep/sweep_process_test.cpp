#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "tests/tuner/program.hpp"
#include "tests/tuner/sweep/sweep_fixture.hpp"

namespace pascaline::testing {
namespace {

constexpr double kBusyMachineSeconds = 12;

// All that a simulation leaves out: compilers, kernels that run, and processes that do it.
TEST_F(SweepTest, WithRealWorkersStoresEveryTrialAndDecides) {
  const SweepSummary summary = sweep();
  EXPECT_EQ(summary.trials, 9);
  EXPECT_EQ(summary.ok, 3);
  EXPECT_EQ(summary.problems.done, 1);
  EXPECT_FALSE(summary.interrupted);
  EXPECT_EQ(tried().size(), 9U);
  std::map<std::pair<std::int64_t, TrialStatus>, int> ended;
  for (const StoredTrial& stored : stored(TrialStage::search)) {
    const TrialStatus status = stored.trial.status;
    ++ended[{stored.trial.config.integer("FAULT"), has_time(status) ? TrialStatus::ok : status}];
  }
  EXPECT_EQ(ended,
            (std::map<std::pair<std::int64_t, TrialStatus>, int>{{{kRight, TrialStatus::ok}, 3},
                                                                 {{kNotANumber, TrialStatus::wrong_result}, 3},
                                                                 {{kDoesNotCompile, TrialStatus::compile_failed}, 3}}));
  const std::vector<Winner> winners = Store(database_, OpenMode::read_only).winners("toy", nullptr);
  ASSERT_EQ(winners.size(), 1U);
  EXPECT_TRUE(winners[0].baseline);
  EXPECT_EQ(last_state(), "finished");
  expect_sound();
}

// The whole command, and who hears of what it did not reach.
TEST_F(SweepTest, TheCommandEndsInTimeAndNamesWhatItDidNotReach) {
  std::string source = bytes_of(folder_ / "toy.cu");
  const std::string line = "out[i] = 3.0 * x[i] + y[i];";
  source.replace(source.find(line), line.size(),
                 "for (const volatile float* look = x; *look < 1e30f;) {}\n    " + line);
  write_bytes(folder_ / "toy.cu", source);
  const std::string folder = folder_.path().string();
  const auto start = std::chrono::steady_clock::now();
  const ProgramResult result = run_program(
      folder_.path(), {"sweep", "--kernels", folder, "--spaces", folder, "--kernel", "toy", "--problem", "N=5000",
                       "--device", "emulator", "--db", database_.string(), "--jobs", "1", "--budget", "1s", "--json"});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 1 + kBusyMachineSeconds);
  EXPECT_EQ(json_of(result).at("not_reached"), nlohmann::json::array({"toy N=5000"}));
  const ProgramResult status = run_program(folder_.path(), {"status", "--db", database_.string()});
  EXPECT_NE(status.out.find("not reached before time ran out (1): toy N=5000"), std::string::npos) << status.out;
}

}  // namespace
}  // namespace pascaline::testing
