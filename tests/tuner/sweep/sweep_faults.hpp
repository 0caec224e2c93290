#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "db/store.hpp"
#include "tests/tuner/program.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {

/// A process and the words it was started with, joined by spaces.
struct LiveProcess {
  int process = 0;
  std::string words;
};

/// Everything below `process`, without zombies.
[[nodiscard]] std::vector<LiveProcess> processes_below(int process);
/// Those of them whose words hold `text`, waiting up to a minute for the first.
[[nodiscard]] std::vector<LiveProcess> workers_of(int process, std::string_view text);
/// Waits until the worker of `sweep` has computed for so long that a kernel without end, or one measured for a long
/// time, is on the device; an attempt is stored before its problem is prepared, which a signal may cut short.
[[nodiscard]] bool wait_until_kernel_runs(int sweep);
/// Waits until `condition` holds; false if it does not within that time.
[[nodiscard]] bool wait_until(const std::function<bool()>& condition,
                              std::chrono::milliseconds longest = std::chrono::seconds(60));
/// Whether all of them have ended, waiting up to ten seconds for it.
[[nodiscard]] bool all_gone(const std::vector<LiveProcess>& processes);
[[nodiscard]] double seconds_since(std::chrono::steady_clock::time_point start);

/// Sweeps of the toy kernel by the executable, each trial taking as long as it is told to.
class SweepFaultsTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path database_ = folder_ / "tuned.db";
  ProgramSetting setting_;
  int sample_ms_ = 20;

  void SetUp() override { write_space({kRight}, {32, 64, 128, 256, 512}); }
  void write_space(const std::vector<Fault>& faults, const std::vector<int>& blocks) const;
  /// `sweep` with the options that all tests share, then `more`.
  [[nodiscard]] std::vector<std::string> command(const std::vector<std::string>& more = {}) const;
  [[nodiscard]] std::vector<std::string> resume(const std::vector<std::string>& more = {}) const;
  [[nodiscard]] ProgramResult run(const std::vector<std::string>& words) const {
    return run_program(folder_.path(), words, setting_);
  }
  [[nodiscard]] int start(const std::vector<std::string>& words) const {
    return start_program(folder_.path(), words, setting_);
  }
  /// What is compiled is kept in a folder of its own, so that compilers run.
  void use_cold_cache() { setting_.environment.emplace_back("PASCALINE_CACHE_DIR", (folder_ / "cold_cache").string()); }

  /// An empty list while there is no database yet.
  [[nodiscard]] std::vector<StoredTrial> trials(TrialStage stage = TrialStage::search) const;
  [[nodiscard]] std::size_t trial_count() const { return trials().size(); }
  /// Configurations with a search trial, each of which must have one only.
  [[nodiscard]] std::set<std::string> tried() const;
  [[nodiscard]] std::map<TrialStatus, int> statuses() const;
  [[nodiscard]] int number(const std::string& sql) const;
  [[nodiscard]] std::string last_state() const;
  [[nodiscard]] std::string output() const { return bytes_of(folder_ / "stdout") + bytes_of(folder_ / "stderr"); }
  /// The file is whole, nothing is left on a device, and the problem has a winner.
  void expect_complete(std::size_t configurations) const;
  void expect_sound() const;
};

}  // namespace pascaline::testing
