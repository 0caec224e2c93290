#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/model_time.hpp"
#include "core/objective.hpp"
#include "core/space/space.hpp"
#include "core/space/space_part.hpp"
#include "core/trial.hpp"
#include "core/trial_counts.hpp"
#include "db/overview.hpp"
#include "db/sweep_plan.hpp"
#include "tuner/finals/finals_decision.hpp"
#include "tuner/fleet/shard.hpp"
#include "tuner/measure/given_data.hpp"
#include "tuner/measure/measure.hpp"
#include "tuner/monitor/governor.hpp"
#include "tuner/monitor/polite_watch.hpp"
#include "tuner/services/services.hpp"
#include "tuner/sweep/deepening.hpp"
#include "tuner/sweep/forecast.hpp"
#include "tuner/sweep/sweep_view.hpp"

namespace pascaline {

/// A problem to tune and how often the model calls it.
struct SweepProblem {
  Problem problem;
  double count = 1;                  ///< in all phases
  std::string label;                 ///< names in the workload, possibly empty
  std::vector<PhaseCalls> phases{};  ///< the calls by phase of the model; empty: there are no phases
  /// A shape between others of the plan, which no phase calls: it is tuned only where time is left
  /// (SweepSearching::deepen), so that the dispatcher's nearest is nearer. A plan stores it with 0 calls.
  bool between = false;
  SpacePart part{};    ///< of its space that is searched, with that part of the trials
  GivenFiles given{};  ///< with the contents that the problem's `data` is the hash of
  /// Of a site of a model: what any of its alternatives launches. Empty, as a plan does not store it: anything of the
  /// kernels that such a site launches.
  std::vector<Problem> launches{};
};

/// Calls by a model, over its phases; 0 where there are none.
[[nodiscard]] inline double model_calls(const SweepProblem& problem) {
  double calls = 0;
  for (const PhaseCalls& phase : problem.phases) {
    calls += phase.count;
  }
  return calls;
}

/// Finalists besides the default where the objective is by the card's power: the fastest need not be the thriftiest.
inline constexpr int kFinalistsByEnergy = 12;

inline constexpr int kUnlimitedTrials = 1'000'000'000;

/// In place of a searcher: nothing is tried but the defaults and the portfolio.
inline constexpr std::string_view kNoSearcher = "none";

/// The files that a sweep works with, besides its database.
struct SweepFiles {
  std::filesystem::path kernels;  ///< folder of .cu files
  std::filesystem::path spaces;   ///< folder of search spaces, for kernels of models' sites; empty: the installed ones
  std::filesystem::path cache;
  std::filesystem::path program;  ///< the pascaline executable, for workers; empty: this process's own
  std::filesystem::path sensors;  ///< a trace that stands for the card's sensors; empty: the card's own
};

/// How a sweep compiles.
struct SweepCompiling {
  std::string target;  ///< empty: the device's own architecture
  /// As for find_compilers: "all" and lists of versions make the compiler a part of what is searched.
  std::string nvrtc;
  std::size_t jobs = 1;            ///< compile workers
  double timeout_s = 120;          ///< of one variant
  std::uint64_t memory_bytes = 0;  ///< address space of a compile worker; 0: no cap
};

/// How a sweep searches.
struct SweepSearching {
  std::string searcher = "auto";
  std::uint64_t seed = 1;
  /// A search ends where no trial is expected to be faster than the best by this share (StopRule). With a time limit it
  /// makes way for others instead. 0: it never does either.
  double min_gain = 0.0001;
  /// With a time limit: whether time left after the searches goes to finals again, neighbours of winners and shapes in
  /// between, while these are expected to gain more than `min_gain`.
  bool deepen = true;
  bool retry_failed = false;  ///< try again what timed out, crashed or could not be launched in earlier runs
};

/// How long a sweep waits for others.
struct SweepWaits {
  double kernel_timeout_s = 60;  ///< limit of a launch until the durations of launches are known
  double patience = 1;           ///< factor on the time that a worker may be silent, except during launches
  double database_wait_s = 3;    ///< wait for another process's lock before it is reported
};

/// The part of a sweep that is stored for resuming it.
struct RecordedOptions {
  std::string command_line;
  /// Options with paths that were given, made absolute. A resumed run must be given them again.
  std::vector<std::pair<std::string, std::string>> paths;
  std::string resume_run;              ///< uuid of the run to resume; empty: a new one
  std::optional<ShardIdentity> shard;  ///< which part of a fleet this is, stored in its sessions; nothing: the whole
  bool trials_given = true;            ///< false: `SweepOptions::trials` follows from whether there is a limit of time
};

/// What a sweep does.
struct SweepOptions {
  std::vector<std::string> devices{"emulator"};  ///< each gets a worker and a part of the plan
  std::filesystem::path database;
  SweepFiles files;
  SweepCompiling compile;
  SweepSearching search;
  int trials = 100;                ///< a problem, beyond what is already known; kUnlimitedTrials: no limit
  std::optional<double> budget_s;  ///< of the whole run, shared among the problems by expected speedup
  std::optional<std::chrono::system_clock::time_point> until;  ///< as well
  int finalists = 5;                                           ///< besides the default
  MeasureOptions measure;
  FinalsOptions finals;  ///< with the objective: a device that does not report what it takes is refused at once
  GovernorOptions governor;
  PoliteOptions polite;  ///< whether, and how, it makes way for who uses the machine
  SweepWaits waits;
  RecordedOptions record;
};

[[nodiscard]] inline bool has_time_limit(const SweepOptions& options) {
  return options.budget_s.has_value() || options.until.has_value();
}

[[nodiscard]] inline bool deepens(const SweepOptions& options) {
  return options.search.deepen && has_time_limit(options);
}

/// What a sweep tells while it runs; any function may be empty.
struct SweepEvents {
  std::function<void(const std::string&)> note;
  /// A device turns to a problem; `known` configurations need not be measured.
  std::function<void(const std::string& device, const SweepProblem&, std::size_t known)> problem;
  /// A trial was stored: how many of how many are done, the problem's best and default so far (0: none).
  std::function<void(const Trial&, int done, int planned, double best_us, double default_us)> trial;
  std::function<void(const std::string& device, const SweepProblem&, const FinalsResult&, int trials)> winner;
  /// A few times a second.
  std::function<void(const SweepView&)> view;
};

/// What a model spends in a phase: calls times times, over all its problems. One without a result stays at its default,
/// whose time is estimated where it was not measured.
struct PhaseTime {
  std::string device;  ///< name of the kind of device
  std::string phase;   ///< "prompt", "token", "image", or as the workload calls it
  double calls = 0;
  double before_us = 0;      ///< with every problem's default
  double after_us = 0;       ///< with the winners
  int problems = 0;          ///< with a result
  int at_default = 0;        ///< without one
  double at_default_us = 0;  ///< of `before_us`, of those
  double speedup_low = 1;    ///< 95 % interval of before over after (ModelTime)
  double speedup_high = 1;
};

/// Result of a sweep for a whole model on a kind of device.
struct ModelResult {
  PhaseTime total{};                ///< of all phases, each problem once
  std::vector<ModelPoint> curve{};  ///< over the time since the run began
  EstimatedDefaults estimated{};    ///< of a call of problems whose default was not measured
};

/// The time that a sweep took, in seconds; those of several devices are added up.
struct SweepTimes {
  double wall_s = 0;       ///< of this process
  double busy_s = 0;       ///< devices measuring
  double opening_s = 0;    ///< of `busy_s`, opening devices and warming them up
  double preparing_s = 0;  ///< of `busy_s`, for buffers, first inputs and references of shapes
  double finals_s = 0;     ///< of `busy_s`, in finals
  double waited_s = 0;     ///< of `busy_s`, for cards to be steady
  double paused_s = 0;     ///< devices left to who uses the machine; not of `busy_s`
  double compile_s = 0;    ///< compilers working
  TrialTimes trials{};     ///< where the devices' time for trials went, over the run's sessions
};

/// How far a sweep came with its problems.
struct SweepProblems {
  int planned = 0;    ///< problems on all kinds of devices, without shapes in between
  int decided = 0;    ///< planned problems with a result, of this run or an earlier one
  int done = 0;       ///< problems decided in this run
  int exhausted = 0;  ///< planned problems with no trial expected to be faster by `SweepSearching::min_gain`
  std::vector<std::string> not_reached{};  ///< problems without a trial in this run, for each kind of device
  std::vector<std::string> left_out{};     ///< "problem: reason", of those that cannot be tuned here
  std::vector<std::string> doubts{};       ///< "problem: why", of those whose reference is probably wrong
};

/// The time that a sweep was expected to need.
struct SweepForecast {
  std::vector<Forecast> too_short{};   ///< at the beginning, of kinds of devices with too little time
  std::optional<double> missing_s{};   ///< with a limit of time: what first looks at the rest would take, estimated
  std::optional<double> expected_s{};  ///< the estimate shown beforehand; nothing if there was none
};

/// The loss of devices before a sweep was over.
struct DevicesLost {
  bool gave_up = false;  ///< whether a governor gave up a device
  std::string remedy{};  ///< the option that measures such a device as it is; may be empty
  std::string reason{};  ///< why devices were lost or given up; empty if none were
};

/// Counts of a sweep from the beginning of the run. Counts of trials cover all its sessions; those of finals are set at
/// the end.
struct SweepSummary : TrialCounts {
  std::int64_t session = 0;  ///< of the first device
  std::string run;           ///< uuid
  int reused = 0;            ///< configurations known from earlier runs under the same key
  int reused_ok = 0;         ///< usable ones among them
  int restarts = 0;          ///< of measurement workers
  bool interrupted = false;  ///< before the plan was done
  DevicesLost end{};
  SweepTimes times{};
  SweepProblems problems{};
  SweepForecast forecast{};
  std::vector<PhaseTime> phases{};    ///< by kind of device, in the order prompt, token, image, others
  std::vector<ModelResult> models{};  ///< by kind of device; empty without phases
  DeepeningCounts deepening{};        ///< of this process
};

/// `stop` was set while a sweep was being planned: nothing of it was begun.
class SweepStoppedError : public Error {
 public:
  using Error::Error;
};

/// Throws Error, naming the device and what it lacks, if one does not report what the sweep's objective takes;
/// `run_sweep` begins with it. `way_out`: what a user can do about it.
void require_sensors_of_objective(const SweepOptions& options, std::string_view way_out = "leave --objective out");

/// Tunes problems, each with the space of its kernel: default first, then what the searcher proposes. Worker processes
/// compile ahead; each device is owned by another process that verifies and times; every trial is stored before it
/// counts; then finals. What of a kernel cannot be used costs that kernel's problems and no others. `stop` ends it
/// after the trials in flight, or with SweepStoppedError if it is being planned and that would take long. Throws Error
/// and its kinds for faults of environment or input; everything stored before stays, and `resume_run` continues from
/// there.
[[nodiscard]] SweepSummary run_sweep(const std::vector<Space>& spaces, const std::vector<SweepProblem>& problems,
                                     const SweepOptions& options, const SweepEvents& events,
                                     const std::atomic<bool>& stop, const SweepServices& services = real_services());

}  // namespace pascaline
