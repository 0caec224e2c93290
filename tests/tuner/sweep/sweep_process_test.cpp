#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <thread>

#include "core/error.hpp"
#include "db/sweep_plan.hpp"
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

// Far too little time: what was decided counts, and a line says what was not and what to do.
TEST_F(SweepTest, TheCommandSaysBeforeAndAfterThatTheTimeDoesNotSuffice) {
  space_ = make_space({kRight});
  const std::string folder = folder_.path().string();
  std::vector<std::string> words{
      "sweep",    "--kernels",          folder, "--spaces",         folder,   "--kernel", "toy",
      "--device", "emulator",           "--db", database_.string(), "--jobs", "1",        "--budget",
      "6s",       "--sample-budget-ms", "50"};
  for (int n = 1; n <= 40; ++n) {
    words.insert(words.end(), {"--problem", "N=" + std::to_string(1000 * n)});
  }
  const ProgramResult result = run_program(folder_.path(), words);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.out.find(" of 40 shapes here; about "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(" of 40 shapes were left at their defaults; to reach more: pascaline sweep --resume --db "),
            std::string::npos)
      << result.out;
  EXPECT_EQ(result.out.find("not reached"), std::string::npos) << "that is the same once more: " << result.out;
}

/// A sweep by the executable, which can be killed.
class KilledSweepTest : public SweepTest {
 protected:
  // Right kernels only, so that every trial takes as long as it is measured.
  void SetUp() override {
    nlohmann::json json = toy_json();
    json["parameters"][0]["values"] = {32, 64, 128, 256, 512};
    write_toys(folder_.path(), {json});
  }
  [[nodiscard]] std::vector<std::string> command() const {
    return {"sweep",
            "--kernels",
            folder_.path().string(),
            "--spaces",
            folder_.path().string(),
            "--kernel",
            "toy",
            "--problem",
            "N=100000",
            "--device",
            "emulator",
            "--db",
            database_.string(),
            "--jobs",
            "1",
            "--warm-cache",
            "--min-samples",
            "100000",
            "--max-samples",
            "100000",
            "--sample-budget-ms",
            "600",
            "--race-error",
            "0",
            "--rounds",
            "2"};
  }
  [[nodiscard]] std::size_t trials_so_far() const {
    try {
      return Store(database_, OpenMode::read_only).trials({}).size();
    } catch (const Error&) {
      return 0;  // the file is being made
    }
  }
};

TEST_F(KilledSweepTest, NextSweepTriesTheAttemptAgainAndContinues) {
  const int child = start_program(folder_.path(), command());
  for (int i = 0; i < 6000 && trials_so_far() < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  // In the middle of a trial, as far as can be told from outside: measuring takes most of the time.
  const auto attempts = [&] {
    return SQLite::Database(database_.string()).execAndGet("SELECT count(*) FROM attempts").getInt();
  };
  // Stopped, it can be looked at without it moving on.
  for (int i = 0; i < 600; ++i) {
    ::kill(child, SIGSTOP);
    if (attempts() >= 1) {
      break;
    }
    ::kill(child, SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ::kill(child, SIGKILL);
  EXPECT_EQ(wait_child(child), 128 + SIGKILL);
  EXPECT_EQ(SQLite::Database(database_.string()).execAndGet("PRAGMA integrity_check").getString(), "ok");
  const std::size_t before = trials_so_far();
  ASSERT_GE(before, 2U);
  ASSERT_GE(attempts(), 1) << "killed between two trials";

  const ProgramResult next = run_program(folder_.path(), command());
  EXPECT_EQ(next.exit_code, 0) << next.error;
  EXPECT_EQ(attempts(), 0);
  expect_sound();
  const Store store(database_, OpenMode::read_only);
  EXPECT_TRUE(store.trials({.status = TrialStatus::crashed}).empty());
  EXPECT_EQ(store.sessions().at(0).state, "finished");
  EXPECT_EQ(store.sessions().at(1).state, "interrupted");
  EXPECT_NE(store.sessions().at(0).command_line.find("--sample-budget-ms 600"), std::string::npos);
  EXPECT_EQ(tried().size(), 5U);
}

/// A workload of two sizes.
class SizesTest : public SweepTest {
 protected:
  void SetUp() override {
    SweepTest::SetUp();
    nlohmann::json json = toy_json({kRight});
    json["parameters"][0]["values"] = {64, 32, 128};
    json["dimensions"][0]["varies"] = true;
    write_toys(folder_.path(), {json});
    write_bytes(folder_ / "sizes.json",
                R"({"schema": 1, "name": "sizes", "description": "two sizes", "source": "a test",
      "phases": [{"name": "prompt", "per": "prompt of S tokens", "symbols": {"S": [10, 20]}}],
      "entries": [{"kernel": "toy", "name": "first", "phase": "prompt", "dimensions": {"N": "100 * S"}, "count": 2}]})");
  }
  [[nodiscard]] ProgramResult sweep_sizes(const std::vector<std::string>& more) const {
    const std::string folder = folder_.path().string();
    std::vector<std::string> words{"sweep",     "--workload",   (folder_ / "sizes.json").string(),
                                   "--kernels", folder,         "--spaces",
                                   folder,      "--db",         database_.string(),
                                   "--device",  "emulator",     "--jobs",
                                   "1",         "--warm-cache", "--max-samples",
                                   "10",        "--rounds",     "4"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(folder_.path(), words);
  }
  [[nodiscard]] SweepPlan plan() const {
    const Store store(database_, OpenMode::read_only);
    return store.plan(store.sessions().at(0).run_uuid).value();
  }
};

TEST_F(SizesTest, AWorkloadsSymbolsSayWhatVaries) {
  const auto json = json_of(sweep_sizes({"--budget", "300s", "--min-gain", "0", "--json"}));
  EXPECT_EQ(json.at("deepening").at("shapes"), 1);
  EXPECT_EQ(json.at("problems_done"), 2);
  EXPECT_EQ(json.at("phases").at(0).at("problems"), 2) << "the shape in between is in no phase";
  ASSERT_EQ(plan().problems.size(), 3U);
  EXPECT_EQ(plan().problems[2].problem.text(), "toy N=1400");
  EXPECT_EQ(plan().problems[2].label, "between S=10 and S=20; prompt: first");
  const std::vector<Winner> winners = Store(database_, OpenMode::read_only).winners("toy", nullptr);
  EXPECT_TRUE(
      std::ranges::any_of(winners, [](const Winner& winner) { return winner.trial.problem.text() == "toy N=1400"; }));
  const ProgramResult trials = sweep_sizes({"--trials", "5"});
  EXPECT_EQ(trials.exit_code, 0);
  EXPECT_EQ(trials.out.find("time left"), std::string::npos) << trials.out;
  EXPECT_EQ(plan().problems.size(), 2U) << "without a limit of time there is nothing in between";
  const ProgramResult off = sweep_sizes({"--budget", "300s", "--time-left", "search"});
  EXPECT_EQ(off.out.find("time left"), std::string::npos) << off.out;
  EXPECT_FALSE(plan().deepen);
}

}  // namespace
}  // namespace pascaline::testing
