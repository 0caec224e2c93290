#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/space.hpp"
#include "core/trial.hpp"
#include "tuner/finals.hpp"
#include "tuner/measure.hpp"

namespace pascaline {

/// A problem to tune and how often the model calls it.
struct SweepProblem {
  Problem problem;
  double count = 1;
  std::string label;  ///< names in the workload, possibly empty
};

/// What a sweep does.
struct SweepOptions {
  std::string device = "host";
  std::string target;             ///< empty: the device's own architecture
  std::string nvrtc;              ///< narrows the choice of NVRTC
  std::filesystem::path kernels;  ///< folder of .cu files
  std::filesystem::path cache;
  std::filesystem::path database;
  std::string searcher = "random";
  std::uint64_t seed = 1;
  int trials = 100;               ///< a problem, beyond what is already known
  std::optional<double> minutes;  ///< of the whole sweep, shared evenly by the problems
  std::size_t jobs = 1;           ///< compile workers
  std::filesystem::path program;  ///< the pascaline executable, for them; empty: this process's own
  int finalists = 3;              ///< besides the default
  MeasureOptions measure;
  FinalsOptions finals;
  std::string command_line;  ///< for the record
  /// A session of this program to go on with, after a fault took the device from the process; 0: a new one.
  std::int64_t continue_session = 0;
};

/// What a sweep tells while it runs; any function may be empty.
struct SweepEvents {
  std::function<void(const std::string&)> note;
  std::function<void(std::size_t index, std::size_t count, const SweepProblem&, std::size_t known)> problem;
  /// After each trial: the trial, how many of how many are done, the best median and the default's so far (0: none).
  std::function<void(const Trial&, int done, int planned, double best_us, double default_us)> trial;
  std::function<void(const SweepProblem&, const FinalsResult&)> winner;
};

/// Counts of a sweep, from the session's beginning.
struct SweepSummary {
  std::int64_t session = 0;
  bool device_lost = false;  ///< ended early: call again in a new process with `continue_session`
  int trials = 0;
  int ok = 0;
  int reused = 0;     ///< configurations known from earlier sessions under the same key
  int reused_ok = 0;  ///< usable ones among them
  int problems_done = 0;
  bool interrupted = false;
};

/// Tunes the problems of one space one after the other: default first, then what the searcher proposes; compile
/// ahead in worker processes, verify, time, store each trial; then finals. `stop` ends it after the trial in flight.
/// Throws Error and its kinds for faults of environment or input; everything stored before stays.
[[nodiscard]] SweepSummary run_sweep(const Space& space, const std::vector<SweepProblem>& problems,
                                     const SweepOptions& options, const SweepEvents& events,
                                     const std::atomic<bool>& stop);

}  // namespace pascaline
