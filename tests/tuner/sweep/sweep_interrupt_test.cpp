#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "tests/tuner/sweep/sweep_faults.hpp"

namespace pascaline::testing {
namespace {

using Clock = std::chrono::steady_clock;

class InterruptTest : public SweepFaultsTest {
 protected:
  void SetUp() override {
    SweepFaultsTest::SetUp();
    sample_ms_ = 400;  // so long that a sweep is not done before a busy machine has seen its first trial
  }
  // Until it is no longer taken for the first one's echo; returns the exit code.
  static int interrupt_again(int sweep) {
    const auto began = Clock::now();
    int status = 0;
    while (::waitpid(sweep, &status, WNOHANG) == 0 && seconds_since(began) < 30) {
      ::kill(sweep, SIGINT);
      std::this_thread::yield();
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // Ends `sweep` after its next trial, which takes half a second.
  void interrupt_once(int sweep, int signal) const {
    const std::size_t before = trial_count();
    EXPECT_TRUE(wait_until([&] { return trial_count() > before; })) << output();
    const auto workers = processes_below(sweep);
    ::kill(sweep, signal);
    EXPECT_EQ(wait_child(sweep), 130) << output();
    EXPECT_NE(output().find("resume with: pascaline sweep --resume --db " + database_.string()), std::string::npos)
        << output();
    EXPECT_TRUE(all_gone(workers));
    EXPECT_TRUE(statuses()[TrialStatus::crashed] == 0 && statuses()[TrialStatus::timed_out] == 0);
    expect_sound();
    EXPECT_EQ(last_state(), "interrupted");
  }
};

TEST_F(InterruptTest, FirstOfAnySignalFinishesTheTrialInFlightAndTheSweepCanBeResumed) {
  write_space({kRight}, {32, 64, 96, 128, 160, 192, 224, 256});
  interrupt_once(start(command()), SIGINT);
  EXPECT_LT(trial_count(), 8U);
  interrupt_once(start(resume()), SIGTERM);
  EXPECT_LT(trial_count(), 8U);
  const std::set<std::string> before = tried();
  const ProgramResult resumed = run(resume({"--sample-budget-ms", "20"}));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.error;
  expect_complete(8);
  const std::set<std::string> now = tried();
  EXPECT_TRUE(std::ranges::includes(now, before));
}

TEST_F(InterruptTest, SecondEndsAtOnceAndLeavesNeitherProcessesNorTemporaryFolders) {
  const std::filesystem::path temporary = folder_ / "tmp";
  std::filesystem::create_directory(temporary);
  write_odd_compiler(folder_ / "odd++");
  use_cold_cache();
  setting_.environment.emplace_back("PASCALINE_HOST_CXX", (folder_ / "odd++").string());
  setting_.environment.emplace_back("TMPDIR", temporary.string());
  write_space({kEndless, kHangsCompiler}, {64});
  const int sweep = start(command({"--kernel-timeout", "60"}));
  const auto workers = workers_of(sweep, "compile-worker");
  EXPECT_TRUE(wait_until_kernel_runs(sweep)) << output();
  EXPECT_TRUE(wait_until([&] { return !std::filesystem::is_empty(temporary); })) << "a compiler hangs";
  ::kill(sweep, SIGINT);
  EXPECT_TRUE(wait_until([&] { return output().find("stopping after this trial, at most") != std::string::npos; }));
  EXPECT_NE(output().find("press Ctrl-C again to abort"), std::string::npos) << output();
  EXPECT_EQ(::waitpid(sweep, nullptr, WNOHANG), 0) << "the trial in flight is finished first";
  const auto below = processes_below(sweep);
  const auto second = Clock::now();
  EXPECT_EQ(interrupt_again(sweep), 128 + SIGINT);
  EXPECT_LT(seconds_since(second), 10.0) << "the trial would have gone on for longer";
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
  EXPECT_TRUE(all_gone(workers) && all_gone(below));
  EXPECT_EQ(trial_count(), 0U);
  EXPECT_EQ(number("SELECT count(*) FROM attempts"), 1) << "the next sweep finds what was on the device";
}

}  // namespace
}  // namespace pascaline::testing
