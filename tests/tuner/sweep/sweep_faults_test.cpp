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

// SimulatedFaultsTest has the rest: other faults, and later sweeps.
TEST_F(KernelFaultsTest, HangsAndCrashesCostTheirOwnTrial) {
  write_space({kRight, kEndless, kIllegalAddress}, {64});
  const ProgramResult first = run(command({"--kernel-timeout", "2"}));
  EXPECT_EQ(first.exit_code, 0) << first.error;
  expect_complete(3);
  expect_all(kRight, 1, TrialStatus::ok, "");
  expect_all(kEndless, 1, TrialStatus::timed_out, "after 2 s in phase 'launch'");
  if (!kAddressSanitizer) {
    expect_all(kIllegalAddress, 1, TrialStatus::crashed, "signal 11");
  }
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
  EXPECT_EQ(statuses()[TrialStatus::ok] + statuses()[TrialStatus::dropped], 2)
      << "the compiler's end must not have been kept in the cache";
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
