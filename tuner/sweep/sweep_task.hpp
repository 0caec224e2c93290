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
  reserved,   ///< a shape in between that was not begun: for everybody else it is not there
  waiting,    ///< for a device
  searching,  ///< a device measures its configurations
  gathering,  ///< the device waits for its finalists to be compiled
  finals,     ///< the device compares them
  done,       ///< nothing more is to be done
  left_out,   ///< it cannot be tuned here
};

[[nodiscard]] std::string_view name_of(TaskStage stage) noexcept;

/// The stage of a task and the ways from one to another. A DevicePlan opens and takes a task for a device, and ends it
/// before the first turn if an earlier process of the run did; all else is done by the DeviceScheduler it was taken
/// for. Each transition throws Error, a fault of the program, if it does not lead away from the present stage.
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

/// The first look at a task in this run, with its finals: if it had one, and what there was no time for so far.
struct TaskLook {
  bool taken = false;           ///< a configuration ran, or nothing that could run was found in its turn
  double put_off_s = 0;         ///< that it kept a device without a trial, when it last had to make room for others
  bool finals_put_off = false;  ///< its share of the time was over: it comes again when all were looked at
  std::string no_time{};        ///< for people; empty: nothing
  std::string no_time_by_objective{};  ///< the same of the last finals' other objective

  /// It kept a device for so long without a trial.
  void put_off(double seconds);
  /// A configuration ran.
  void take();
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
  std::map<std::string, std::optional<Binary>> binaries{};  ///< of the next finalists; without: being compiled
  bool begun = false;                                       ///< in this process
  std::string decided_on{};                                 ///< the finalists that were compared
  std::optional<KnownEnergies> energies{};                  ///< that the last in this process to measure any did
  OpenFinals open{};                                        ///< what the last ones left open
  int again = 0;                                            ///< times that they were held again

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
  Deepening what = Deepening::none;  ///< what the turn is for that it has
  double expected_share = 0;         ///< of the time, that the turn may save
  double best_before_us = 0;         ///< of the search, when the turn began
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
  std::string fault{};    ///< of its kernel's files, for which it is left out: no valid configuration or no reference
  std::size_t index = 0;  ///< place in the plan
  double weight = 0;      ///< calls by the model, or of a shape in between what it is taken to have
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
  [[nodiscard]] bool untried() const noexcept { return !over() && !look.taken; }
  /// True if nothing is to be done on it as things stand.
  [[nodiscard]] bool over() const noexcept { return state.reserved() || state.over(); }
  /// True if its search has nothing more to try.
  [[nodiscard]] bool search_over() const noexcept { return search.spent() && search.open() == 0; }
  /// True if its search has nothing more to try, or expects too little of it.
  [[nodiscard]] bool at_its_end() const noexcept { return search.little_left() || search_over(); }
  /// Whom finals compare: those of the search; where they are held again by time alone, of them what the last ones left
  /// open, and the baseline.
  [[nodiscard]] std::vector<Config> wanted_finalists(bool by_time_alone) const;
};

}  // namespace pascaline
