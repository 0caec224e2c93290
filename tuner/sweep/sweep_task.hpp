#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/store.hpp"
#include "runtime/device/compile.hpp"
#include "tuner/finals/known_energy.hpp"
#include "tuner/measure/agreement.hpp"
#include "tuner/measure/reference_run.hpp"
#include "tuner/sweep/deepening.hpp"
#include "tuner/sweep/problem_search.hpp"
#include "tuner/sweep/transfer_priors.hpp"
#include "tuner/sweep/tunable.hpp"

namespace pascaline {

/// Where a problem of a plan stands.
enum class TaskStage : std::uint8_t {
  reserved,   ///< a shape in between that was not begun; no other code counts it
  waiting,    ///< for a device
  searching,  ///< a device measures its configurations
  gathering,  ///< the device waits for its finalists to be compiled
  finals,     ///< the device compares them
  done,       ///< nothing more is to be done
  left_out,   ///< it cannot be tuned here
};

[[nodiscard]] std::string_view name_of(TaskStage stage) noexcept;

/// The stage of a task and its transitions. A DevicePlan, with its Agenda, opens a task and takes it for a device. It
/// also finishes a waiting task that needs no more turns: because an earlier process of the run finished it, or because
/// nothing is left to try. The device's DeviceScheduler makes all other transitions. A transition that the present
/// stage does not allow throws Error: it is a fault of the program.
class TaskState {
 public:
  /// `first`: waiting, or reserved for a shape in between.
  explicit TaskState(TaskStage first = TaskStage::waiting) noexcept : stage_(first) {}

  void open();                         ///< reserved -> waiting
  void take();                         ///< waiting -> searching
  void gather();                       ///< searching or finals -> gathering
  void compare();                      ///< gathering -> finals
  void release();                      ///< searching, gathering or finals -> waiting, for a later turn
  void finish();                       ///< waiting, searching, gathering or finals -> done
  void leave_out(std::string reason);  ///< searching, gathering or finals -> left_out

  [[nodiscard]] TaskStage stage() const noexcept { return stage_; }
  [[nodiscard]] bool reserved() const noexcept { return stage_ == TaskStage::reserved; }
  /// True if a device works on it.
  [[nodiscard]] bool taken() const noexcept {
    return stage_ == TaskStage::searching || stage_ == TaskStage::gathering || stage_ == TaskStage::finals;
  }
  /// True if nothing more is to be done on it.
  [[nodiscard]] bool over() const noexcept { return stage_ == TaskStage::done || stage_ == TaskStage::left_out; }
  /// Why it was left out; empty if it was not.
  [[nodiscard]] const std::string& why_left_out() const noexcept { return why_left_out_; }

 private:
  void move(bool allowed, TaskStage to);

  TaskStage stage_;
  std::string why_left_out_;
};

/// The code that a task's results are compared with, and how far they agree with it.
struct TaskReference {
  enum class Stage : std::uint8_t { none, wanted, compiling, ready, unusable };
  Stage stage = Stage::none;     ///< none: what is tuned compares its configurations itself
  ReferenceRun run{};            ///< when it is ready
  std::vector<Config> failed{};  ///< configurations that it cannot be compiled in: the default, then the closest to it
  std::string why_unusable{};    ///< in the first of them, whatever the stage
  bool told = false;             ///< of the failed ones
  Agreement agreement{};         ///< of the results in this process
  std::vector<std::string> weak_checks{};  ///< of outputs whose check can hardly fail
};

/// The rows of the database that a task's trials belong to.
struct TaskRows {
  const Tunable& tunable;
  BoundSpace own_bound;                ///< of the kernel's own space
  std::vector<ContextIds> contexts{};  ///< by compiler
  std::int64_t session = 0;            ///< of the device that has the task, or had it last

  /// A configuration of the search as it is stored.
  struct Stored {
    ContextIds context;
    Config config;            ///< the kernel's own
    bool is_default = false;  ///< of the kernel's space, whatever compiles it
  };
  [[nodiscard]] Stored stored(const Config& config) const;
  /// A trial of the search as it is stored in the context of `stored(trial.config)`.
  [[nodiscard]] Trial stored_trial(Trial trial) const;
};

/// The time of a device that a task took.
struct TaskCosts {
  double spent_s = 0;                     ///< by trials
  int trials = 0;                         ///< that took it
  std::optional<double> preparation_s{};  ///< when a device last turned to the task
  double first_look_s = 0;                ///< its first turn in which anything ran, with its finals
  int done = 0;                           ///< trials of the search when the last turn ended

  /// A device made a trial.
  void add(const Trial& trial) noexcept {
    spent_s += (trial.verify_ms + trial.measure_ms) / 1000;
    ++trials;
  }
  /// Seconds of one more trial, by those before; nothing if there were none.
  [[nodiscard]] std::optional<double> trial_s() const noexcept {
    return trials > 0 ? std::optional(spent_s / trials) : std::nullopt;
  }
};

/// The first look at a task in this run, including its finals.
struct TaskLook {
  bool had = false;                    ///< a configuration ran, or the turn found none that can run
  double put_off_s = 0;                ///< how long it kept a device without a trial before it last made way for others
  bool finals_put_off = false;         ///< its share of the time is used up: finals follow the first looks at all tasks
  std::string no_time{};               ///< what there was no time for, for display; empty: nothing
  std::string no_time_by_objective{};  ///< the same for finals by the second objective

  /// Notes that it kept a device for `seconds` without a trial.
  void put_off(double seconds);
  /// Notes that a configuration ran.
  void note_run();
};

struct SweepTask;

/// The plan's problems that a task launches, as a site of a model does.
struct TaskLaunches {
  std::vector<const SweepTask*> tasks{};
  std::string winners_then{};  ///< `winners` when a device last turned to the task

  /// Their winners, as far as they are not the defaults.
  [[nodiscard]] std::string winners() const;
};

/// The finals of a task: those that come next, and what the last ones left.
struct TaskFinals {
  std::map<std::string, std::optional<Binary>> binaries{};  ///< of the next finalists; nothing while one compiles
  bool begun = false;                                       ///< in this process
  std::string decided_on{};                                 ///< key of the finalists that were compared last
  std::optional<KnownEnergies> energies{};                  ///< from the last finals in this process that measured any
  OpenFinals open{};                                        ///< what the last ones left open
  int again = 0;                                            ///< number of repeated finals

  [[nodiscard]] bool misses_binaries() const;
};

/// The present result of a task.
struct TaskResult {
  bool decided = false;            ///< in this run
  bool provisional = false;        ///< by the search's trials, without finals
  std::optional<Config> winner{};  ///< of the last finals, or of the search where there was no time for any
};

/// A task's use of the time that is left.
struct TaskDeepening {
  Deepening what = Deepening::none;  ///< purpose of the present turn
  double expected_share = 0;         ///< share of the time that the turn may save
  double best_before_us = 0;         ///< best time of the search when the turn began
  std::size_t trying = 0;            ///< neighbours in the turn
  NeighbourRecord near_winner{};
};

/// Earlier measurements, by other devices or of other problems, that a task's search begins with.
struct TaskTransfer {
  std::vector<RelatedProblem> elsewhere{};    ///< by other devices
  std::vector<RelatedProblem> other_types{};  ///< by this device before the run, with other element types
  std::vector<TakenOver> taken_over{};        ///< both and their winners, for people
  bool types_of_run_asked = false;            ///< for the winners so far of the run's problems of other types
};

/// A problem of the plan on one kind of device.
struct SweepTask {
  /// All but `wanted` must outlive it. Throws as ProblemSearch.
  SweepTask(const Tunable& tunable, const SweepProblem& wanted, const DeviceLimits& limits,
            const SweepOptions& options);

  const Tunable& tunable;
  ProblemSearch search;
  TaskRows rows;
  TaskState state;
  std::string fault{};    ///< in its kernel's files (no valid configuration, no reference): it is left out
  std::size_t index = 0;  ///< place in the plan
  /// Expected calls by the model: fewer than planned for a problem that only alternatives of a site launch, a guess for
  /// a shape in between.
  double weight = 0;
  TaskReference reference{};
  TaskTransfer transfer{};
  TaskCosts costs{};
  TaskLook look{};
  TaskLaunches launches{};
  TaskFinals finals{};
  TaskResult result{};
  TaskDeepening deepening{};

  /// True if not all configurations were measured that have to be compared.
  [[nodiscard]] bool lacks_alternatives() const noexcept { return tunable.compares_all() && !search_over(); }
  /// True if it waits for its first look of this run and has not made way for others.
  [[nodiscard]] bool fresh() const noexcept { return untried() && look.put_off_s == 0; }
  /// True if it waits for its first look of this run.
  [[nodiscard]] bool untried() const noexcept { return !over() && !look.had; }
  /// True if nothing is known of it: no result of this run or an earlier one.
  [[nodiscard]] bool unreached() const noexcept {
    return untried() && search.usable() == 0 && !search.wanted().between;
  }
  /// True if nothing is to be done on it as things stand.
  [[nodiscard]] bool over() const noexcept { return state.reserved() || state.over(); }
  /// True if its search has nothing more to try.
  [[nodiscard]] bool search_over() const noexcept { return search.spent() && search.open() == 0; }
  /// True if its search has nothing more to try, or expects too little of it.
  [[nodiscard]] bool at_its_end() const noexcept { return search.little_left() || search_over(); }
  /// Returns the finalists to compare. Finals held again by time alone take only the baseline and those that the last
  /// finals left open.
  [[nodiscard]] std::vector<Config> wanted_finalists(bool by_time_alone) const;
};

}  // namespace pascaline
