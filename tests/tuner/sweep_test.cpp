#include "tuner/sweep.hpp"

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <thread>

#include "core/error.hpp"
#include "db/store.hpp"
#include "tests/tuner/program.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

/// A sweep of the toy kernel: three blocks times right, wrong and not compiling, nine configurations.
class SweepTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path database_ = folder_ / "tuned.db";
  Space space_ = make_space({kRight, kNotANumber, kDoesNotCompile});
  SweepOptions options_;
  SweepEvents events_;
  std::atomic<bool> stop_{false};

  Space make_space(const std::vector<Fault>& faults) const {
    write_toys(folder_.path(), {toy_json(faults)});
    return Space::load(folder_ / "toy.json");
  }
  void SetUp() override {
    options_.program = PASCALINE_TEST_PROGRAM;
    options_.kernels = folder_.path();
    options_.cache = test_cache();
    options_.database = database_;
    options_.jobs = 2;
    options_.measure = quick_measure();
    options_.finals.rounds = 3;
    options_.command_line = "a test";
  }
  [[nodiscard]] SweepSummary sweep(const std::vector<std::string>& sizes = {"1000"}) {
    std::vector<SweepProblem> problems;
    for (const std::string& n : sizes) {
      problems.push_back({space_.problem({{"N", n}}), 1, ""});
    }
    return run_sweep(space_, problems, options_, events_, stop_);
  }
  [[nodiscard]] std::vector<StoredTrial> stored(TrialStage stage) const {
    std::vector<StoredTrial> trials = Store(database_, OpenMode::read_only).trials({});
    std::erase_if(trials, [&](const StoredTrial& trial) { return trial.trial.stage != stage; });
    return trials;
  }
  [[nodiscard]] std::set<std::string> tried() const {
    std::set<std::string> configs;
    for (const StoredTrial& trial : stored(TrialStage::search)) {
      EXPECT_TRUE(configs.insert(trial.trial.config.text()).second) << trial.trial.config.text() << " twice";
    }
    return configs;
  }
  [[nodiscard]] std::string last_state() const { return Store(database_, OpenMode::read_only).sessions().at(0).state; }
  void expect_sound() const {
    SQLite::Database database(database_.string());
    EXPECT_EQ(database.execAndGet("PRAGMA integrity_check").getString(), "ok");
    EXPECT_EQ(database.execAndGet("SELECT count(*) FROM attempts").getInt(), 0);
  }
};

TEST_F(SweepTest, StoresEveryTrialAndDecides) {
  int events = 0;
  events_.trial = [&](const Trial&, int done, int planned, double, double) {
    EXPECT_EQ(done, ++events);
    EXPECT_EQ(planned, 100);
  };
  const SweepSummary summary = sweep();
  EXPECT_EQ(summary.trials, 9);
  EXPECT_EQ(events, 9);
  EXPECT_EQ(summary.ok, 3);
  EXPECT_EQ(summary.reused, 0);
  EXPECT_EQ(summary.problems_done, 1);
  EXPECT_FALSE(summary.interrupted);
  EXPECT_EQ(tried().size(), 9U);
  const std::vector<StoredTrial> search = stored(TrialStage::search);
  const auto ended = [&](Fault fault, TrialStatus status) {
    return std::count_if(search.begin(), search.end(), [&](const StoredTrial& stored) {
      return stored.trial.config.integer("FAULT") == fault && stored.trial.status == status;
    });
  };
  EXPECT_EQ(ended(kRight, TrialStatus::ok), 3);
  EXPECT_EQ(ended(kNotANumber, TrialStatus::wrong_result), 3);
  EXPECT_EQ(ended(kDoesNotCompile, TrialStatus::compile_failed), 3);
  const Store store(database_, OpenMode::read_only);
  const auto sessions = store.sessions();
  ASSERT_EQ(sessions.size(), 1U);
  EXPECT_EQ(sessions[0].state, "finished");
  EXPECT_EQ(sessions[0].command_line, "a test");
  EXPECT_TRUE(sessions[0].finished_unix_ms);
  expect_sound();
}

TEST_F(SweepTest, DefaultIsMeasuredFirstAndIsAFinalist) {
  options_.trials = 4;
  options_.finalists = 1;
  std::ignore = sweep();
  const auto search = stored(TrialStage::search);
  EXPECT_TRUE(std::any_of(search.begin(), search.end(), [](const auto& trial) { return trial.trial.is_default; }));
  EXPECT_EQ(search.size(), 4U);
  const auto finals = stored(TrialStage::finals);
  EXPECT_LE(finals.size(), 2U);
  EXPECT_EQ(std::count_if(finals.begin(), finals.end(), [](const auto& trial) { return trial.trial.is_default; }), 1);
  const auto winners = Store(database_, OpenMode::read_only).winners("toy", nullptr);
  ASSERT_EQ(winners.size(), 1U);
  EXPECT_EQ(winners[0].trial.problem.text(), "toy N=1000");
  ASSERT_TRUE(winners[0].baseline);
  EXPECT_LE(winners[0].trial.time->median_us, winners[0].baseline->median_us);
  EXPECT_GE(winners[0].confidence, 0.5);
}

TEST_F(SweepTest, SecondRunMeasuresOnlyWhatIsNew) {
  options_.trials = 4;
  EXPECT_EQ(sweep().trials, 4);
  options_.seed = 99;
  const SweepSummary second = sweep();
  EXPECT_EQ(second.reused, 4);
  EXPECT_EQ(second.trials, 4);
  const SweepSummary third = sweep();
  EXPECT_EQ(third.trials, 1);
  EXPECT_EQ(tried().size(), 9U);
  const SweepSummary fourth = sweep();
  EXPECT_EQ(fourth.trials, 0);
  EXPECT_EQ(fourth.reused, 9);
  EXPECT_EQ(fourth.reused_ok, 3);
  EXPECT_EQ(fourth.problems_done, 1) << "the finals are run again";
  EXPECT_EQ(tried().size(), 9U);
}

TEST_F(SweepTest, ChangedSourceIsMeasuredAfresh) {
  EXPECT_EQ(sweep().trials, 9);
  write_bytes(folder_ / "toy.cu", bytes_of(folder_ / "toy.cu") + "// changed\n");
  const SweepSummary second = sweep();
  EXPECT_EQ(second.reused, 0);
  EXPECT_EQ(second.trials, 9);
}

TEST_F(SweepTest, ValuesTheSpaceLostAreLeftOut) {
  EXPECT_EQ(sweep().trials, 9);
  nlohmann::json json = toy_json({kRight, kNotANumber});
  json["parameters"][0]["values"] = {64, 128, 256};
  space_ = Space::parse(json.dump(), "toy.json");
  const SweepSummary second = sweep();
  EXPECT_EQ(second.reused, 4);
  EXPECT_EQ(second.trials, 2);
}

TEST_F(SweepTest, StoppedSweepIsInterruptedAndGoesOnLater) {
  events_.trial = [&](const Trial&, int done, int, double, double) { stop_ = done == 3; };
  const SweepSummary first = sweep({"1000", "500"});
  EXPECT_TRUE(first.interrupted);
  EXPECT_EQ(first.trials, 3);
  EXPECT_EQ(first.problems_done, 0);
  EXPECT_EQ(last_state(), "interrupted");
  expect_sound();
  stop_ = false;
  events_ = {};
  const SweepSummary second = sweep({"1000"});
  EXPECT_FALSE(second.interrupted);
  EXPECT_EQ(second.reused, 3);
  EXPECT_EQ(second.trials, 6);
  EXPECT_EQ(last_state(), "finished");
  EXPECT_EQ(tried().size(), 9U);
}

TEST_F(SweepTest, StoppedBeforeTheFirstTrialIsInterrupted) {
  stop_ = true;
  EXPECT_TRUE(sweep().interrupted);
  EXPECT_EQ(last_state(), "interrupted");
}

TEST_F(SweepTest, StoppedBetweenProblemsIsInterrupted) {
  events_.winner = [&](const SweepProblem&, const FinalsResult&) { stop_ = true; };
  const SweepSummary summary = sweep({"1000", "500"});
  EXPECT_TRUE(summary.interrupted);
  EXPECT_EQ(summary.problems_done, 1);
  EXPECT_EQ(last_state(), "interrupted");
}

TEST_F(SweepTest, TimeIsSharedByTheProblems) {
  options_.minutes = 2.0 / 60;
  options_.measure.cold_cache = false;
  options_.measure.min_samples = 2000;
  options_.measure.max_samples = 2000;
  options_.measure.budget_ms = 1e6;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(sweep({"100000", "100001"}).problems_done, 2);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(Store(database_, OpenMode::read_only).winners("toy", nullptr).size(), 2U);
}

TEST_F(SweepTest, NothingUsableHasNoWinner) {
  space_ = make_space({kDeadlock, kNotANumber});
  const SweepSummary summary = sweep();
  EXPECT_EQ(summary.trials, 6);
  EXPECT_EQ(summary.ok, 0);
  EXPECT_EQ(summary.problems_done, 1);
  EXPECT_TRUE(Store(database_, OpenMode::read_only).winners("toy", nullptr).empty());
  EXPECT_EQ(sweep().reused_ok, 0);
}

TEST_F(SweepTest, FaultsEndTheSessionAndKeepWhatIsStored) {
  EXPECT_EQ(sweep().trials, 9);
  write_bytes(folder_ / "toy.cu", bytes_of(folder_ / "toy.cu") + "#ifdef PASCALINE_REFERENCE\n#error no\n#endif\n");
  try {
    std::ignore = sweep();
    FAIL() << "there is no reference";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'toy_reference' cannot be used"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("toy.cu"), std::string::npos) << error.what();
  }
  EXPECT_EQ(last_state(), "failed");
  EXPECT_EQ(tried().size(), 9U);
  expect_sound();
}

// A default that an earlier sweep died on has no time; without one, anything would win unopposed.
TEST_F(SweepTest, DefaultAnEarlierSweepDiedOnIsTriedOnceMore) {
  options_.trials = 1;
  EXPECT_EQ(sweep().trials, 1);
  SQLite::Database(database_.string(), SQLite::OPEN_READWRITE)
      .exec(
          "UPDATE trials SET status = 'crashed', median_us = NULL, low_us = NULL, high_us = NULL, "
          "sample_count = NULL WHERE stage = 'search'");
  options_.trials = 3;
  EXPECT_EQ(sweep().reused, 1);
  const auto winners = Store(database_, OpenMode::read_only).winners("toy", nullptr);
  ASSERT_FALSE(winners.empty());
  EXPECT_TRUE(winners[0].baseline);
}

/// A sweep by the executable, which can be killed.
class KilledSweepTest : public SweepTest {
 protected:
  [[nodiscard]] std::vector<std::string> command() const {
    return {"sweep",
            "--kernels",
            folder_.path().string(),
            "--spaces",
            folder_.path().string(),
            "--kernel",
            "toy",
            "--problem",
            "N=1000",
            "--device",
            "host",
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
            "150",
            "--abort-factor",
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

TEST_F(KilledSweepTest, NextSweepSettlesTheAttemptAndGoesOn) {
  const int child = start_program(folder_.path(), command());
  for (int i = 0; i < 600 && trials_so_far() < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const auto attempts = [&] {
    return SQLite::Database(database_.string()).execAndGet("SELECT count(*) FROM attempts").getInt();
  };
  // Stopped, it can be looked at without it moving on.
  for (int i = 0; i < 600; ++i) {
    ::kill(child, SIGSTOP);
    if (attempts() == 1) {
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
  ASSERT_EQ(attempts(), 1) << "killed between two trials";

  const ProgramResult next = run_program(folder_.path(), command());
  EXPECT_EQ(next.exit_code, 0) << next.error;
  EXPECT_NE(next.out.find("1 configuration(s) an earlier sweep died on are now marked as crashed"), std::string::npos)
      << next.out;
  expect_sound();
  const Store store(database_, OpenMode::read_only);
  EXPECT_EQ(store.trials({.status = TrialStatus::crashed}).size(), 1U);
  EXPECT_EQ(store.sessions().at(0).state, "finished");
  EXPECT_EQ(store.sessions().at(1).state, "interrupted");
  EXPECT_NE(store.sessions().at(0).command_line.find("--sample-budget-ms 150"), std::string::npos);
  EXPECT_EQ(tried().size(), 9U);
}

TEST_F(KilledSweepTest, FirstInterruptFinishesTheTrialInFlight) {
  const int child = start_program(folder_.path(), command());
  for (int i = 0; i < 600 && trials_so_far() < 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGINT);
  EXPECT_EQ(wait_child(child), 130);
  expect_sound();
  EXPECT_EQ(last_state(), "interrupted");
  EXPECT_LT(trials_so_far(), 9U);
  EXPECT_NE(bytes_of(folder_ / "stdout").find("run the same command again to go on"), std::string::npos);
}

}  // namespace
}  // namespace pascaline::testing
