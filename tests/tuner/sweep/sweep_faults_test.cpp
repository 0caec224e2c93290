#include "tests/tuner/sweep/sweep_faults.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "core/util/sanitizer.hpp"

namespace pascaline::testing {
namespace {

// What kernels and compilers do wrong: each costs its own trial, and the sweep goes on.

class KernelFaultsTest : public SweepFaultsTest {
 protected:
  void use_odd_compiler() {
    write_odd_compiler(folder_ / "odd_c++");
    use_cold_cache();
    setting_.environment.emplace_back("PASCALINE_HOST_CXX", (folder_ / "odd_c++").string());
  }
  [[nodiscard]] std::vector<StoredTrial> with(Fault fault) const {
    std::vector<StoredTrial> found = trials();
    std::erase_if(found, [&](const StoredTrial& trial) { return trial.trial.config.integer("FAULT") != fault; });
    return found;
  }
  void expect_all(Fault fault, std::size_t count, TrialStatus status, const std::string& reason) const {
    const std::vector<StoredTrial> found = with(fault);
    EXPECT_EQ(found.size(), count);
    for (const StoredTrial& stored : found) {
      EXPECT_EQ(name_of(stored.trial.status), name_of(status)) << stored.trial.reason;
      EXPECT_NE(stored.trial.reason.find(reason), std::string::npos) << stored.trial.reason;
    }
  }
};

TEST_F(KernelFaultsTest, HangsAndCrashesCostTheirOwnTrialOnce) {
  write_space({kRight, kEndless, kIllegalAddress, kNotANumber, kWriteBehind}, {64, 128});
  const ProgramResult first = run(command({"--kernel-timeout", "2"}));
  EXPECT_EQ(first.exit_code, 0) << first.error;
  expect_complete(10);
  expect_all(kRight, 2, TrialStatus::ok, "");
  expect_all(kEndless, 2, TrialStatus::timed_out, "after 2 s in phase 'launch'");
  if (!kAddressSanitizer) {
    expect_all(kIllegalAddress, 2, TrialStatus::crashed, "signal 11");
  }
  expect_all(kNotANumber, 2, TrialStatus::wrong_result, "error inf above the tolerance");
  expect_all(kWriteBehind, 2, TrialStatus::wrong_result, "wrote outside of buffer 'out'");
  EXPECT_EQ(statuses()[TrialStatus::ok], 2);

  // What took the device once is left alone from then on …
  const ProgramResult second = run(command({"--kernel-timeout", "2"}));
  EXPECT_EQ(second.exit_code, 0) << second.error;
  expect_complete(10);
  // … unless asked for.
  const ProgramResult retried = run(command({"--kernel-timeout", "2", "--retry-failed"}));
  EXPECT_EQ(retried.exit_code, 0) << retried.error;
  EXPECT_EQ(trial_count(), 14U);
  expect_all(kEndless, 4, TrialStatus::timed_out, "");
  expect_all(kRight, 2, TrialStatus::ok, "");
  expect_sound();
}

TEST_F(KernelFaultsTest, CompilersThatHangOrCrashCostTheirVariant) {
  write_space({kRight, kHangsCompiler, kCrashesCompiler, kDoesNotCompile}, {64, 128});
  use_odd_compiler();
  const ProgramResult first = run(command({"--compile-timeout", "12", "--jobs", "2"}));
  EXPECT_EQ(first.exit_code, 0) << first.error;
  expect_complete(8);
  expect_all(kRight, 2, TrialStatus::ok, "");
  expect_all(kHangsCompiler, 2, TrialStatus::timed_out, "the compiler did not finish within 12 s");
  expect_all(kCrashesCompiler, 2, TrialStatus::crashed, "ended by signal 11");
  expect_all(kDoesNotCompile, 2, TrialStatus::compile_failed, "wrong on purpose");
}

TEST_F(KernelFaultsTest, CompilerShortOfMemoryIsACrashThatMoreMemoryMends) {
  if (kAddressSanitizer) {
    GTEST_SKIP() << "under AddressSanitizer a worker's memory is not capped";
  }
  write_space({kRight, kNeedsMemory}, {64});
  use_cold_cache();
  const ProgramResult capped = run(command({"--compile-memory", "400", "--compile-timeout", "240"}));
  EXPECT_EQ(capped.exit_code, 0) << capped.error;
  expect_complete(2);
  expect_all(kNeedsMemory, 1, TrialStatus::crashed, "it may use 400 MiB of memory");
  const ProgramResult free = run(command({"--compile-memory", "0", "--retry-failed", "--compile-timeout", "240"}));
  EXPECT_EQ(free.exit_code, 0) << free.error;
  EXPECT_EQ(trial_count(), 3U);
  EXPECT_EQ(statuses()[TrialStatus::ok], 2) << "the compiler's end must not have been kept in the cache";
}

TEST_F(KernelFaultsTest, HangingCompilersEndWithTheSweep) {
  write_space({kRight, kHangsCompiler}, {64});
  use_odd_compiler();
  const int sweep = start(command());
  const auto compilers = workers_of(sweep, "sleep 1000");
  EXPECT_EQ(compilers.size(), 1U) << output();
  ::kill(sweep, SIGKILL);
  EXPECT_EQ(wait_child(sweep), 128 + SIGKILL);
  EXPECT_TRUE(all_gone(compilers)) << "a compiler outlived the sweep that was killed";
}

}  // namespace
}  // namespace pascaline::testing
