#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "core/error.hpp"
#include "tests/tuner/program.hpp"
#include "tests/tuner/sweep/sweep_fixture.hpp"

namespace pascaline::testing {
namespace {

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

TEST_F(KilledSweepTest, FirstInterruptFinishesTheTrialInFlight) {
  const int child = start_program(folder_.path(), command());
  for (int i = 0; i < 6000 && trials_so_far() < 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGINT);
  EXPECT_EQ(wait_child(child), 130);
  expect_sound();
  EXPECT_EQ(last_state(), "interrupted");
  EXPECT_LT(trials_so_far(), 5U);
  EXPECT_NE(bytes_of(folder_ / "stdout").find("resume with: pascaline sweep --resume --db"), std::string::npos);
}

}  // namespace
}  // namespace pascaline::testing
