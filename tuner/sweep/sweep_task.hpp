#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "db/store.hpp"
#include "runtime/device/compile.hpp"
#include "tuner/finals/known_energy.hpp"
#include "tuner/finals/standing_decision.hpp"
#include "tuner/measure/agreement.hpp"
#include "tuner/measure/reference_run.hpp"
#include "tuner/sweep/deepening.hpp"
#include "tuner/sweep/problem_search.hpp"
#include "tuner/sweep/transfer_priors.hpp"
#include "tuner/sweep/tunable.hpp"

namespace pascaline {

/// Where a problem of a plan stands.
enum class TaskStage : std::uint8_t {
  waiting,    ///< for a device
  searching,  ///< a device measures its configurations
  gathering,  ///< the device waits for its finalists to be compiled
  finals,     ///< the device compares them
  done,       ///< nothing more is to be done
  left_out,   ///< it cannot be tuned here
};

[[nodiscard]] std::string_view name_of(TaskStage stage) noexcept;

/// The stage of a task and the ways from one to another. A DevicePlan takes a task for a device, and finishes it
/// before the first turn if an earlier process of the run did; all else is done by the DeviceScheduler it was taken
/// for. Each transition throws Error, a fault of the program, if it does not lead away from the present stage.
class TaskState {
 public:
  void take();                         ///< waiting -> searching
  void gather();                       ///< searching or finals -> gathering
  void compare();                      ///< gathering -> finals
  void release();                      ///< searching, gathering or finals -> waiting, for a later turn
  void finish();                       ///< waiting, searching, gathering or finals -> done
  void leave_out(std::string reason);  ///< searching, gathering or finals -> left_out

  [[nodiscard]] TaskStage stage() const noexcept { return stage_; }
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

  TaskStage stage_ = TaskStage::waiting;
  std::string why_left_out_;
};

/// The code that a task's results are compared with.
struct TaskReference {
  enum class Stage : std::uint8_t { none, wanted, compiling, ready, unusable };
  Stage stage = Stage::none;     ///< none: what is tuned compares its configurations itself
  ReferenceRun run{};            ///< when it is ready
  std::vector<Config> failed{};  ///< configurations that it cannot be compiled in: the default, then the closest to it
  std::string why_unusable{};    ///< in the first of them, whatever the stage
  bool told = false;             ///< of the failed ones
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
  BoundSpace own_bound;  ///< of the kernel's own space
  TaskState state;
  TaskReference reference;
  std::vector<ContextIds> contexts{};  ///< the rows that its trials hang on, by compiler
  std::int64_t session = 0;            ///< that its trials belong to: of the device that has it, or had it last
  std::size_t index = 0;               ///< place in the plan
  std::string fault{};   ///< of its kernel's files, for which it is left out: no valid configuration or no reference
  bool decided = false;  ///< this run has come to a result
  bool provisional = false;                                 ///< which is that of the search's trials, without finals
  bool compared = false;                                    ///< finals were begun in this process
  std::string decided_on;                                   ///< the finalists that were compared
  std::vector<std::optional<StandingDecision>> standing{};  ///< of earlier finals, by compiler
  std::optional<std::size_t> standing_of_all{};             ///< that of the compiler that was decided for last
  /// What finals had decided by time when these began, by compiler.
  std::vector<std::optional<Store::DecisionId>> decisions_before{};
  std::optional<KnownEnergies> energies{};   ///< that the last finals in this process to measure any did
  std::set<std::int64_t> later_decisions{};  ///< toolkits of another sweep's, whose winners these did not time
  double spent_s = 0;                        ///< of a device
  std::optional<double> preparation_s{};     ///< of a device, when it last turned to it
  std::vector<const SweepTask*> launched{};  ///< the plan's problems that it launches
  double first_look_s = 0;                   ///< its first turn in which anything ran, with its finals
  std::string launched_then;                 ///< the winners of these when a device last turned to it
  bool looked_at = false;       ///< in this run: a configuration ran, or nothing that could run was found in its turn
  double put_off_s = 0;         ///< that it kept a device without a trial, when it last had to make room for others
  bool finals_put_off = false;  ///< its share of the time was over: it comes again when all were looked at
  std::string no_time_by_objective{};  ///< the same of the last finals' other objective
  std::string no_time{};               ///< what there was no time for so far, for people; empty: nothing
  bool reserved = false;               ///< a shape in between that was not begun: for everybody else it is not there
  double weight = 0;                   ///< calls by the model, or of a shape in between what it is taken to have
  int measured = 0;                    ///< configurations that took `spent_s`
  Agreement agreement{};               ///< of the results in this process
  std::vector<std::string> weak_checks{};                  ///< of outputs whose check can hardly fail
  std::map<std::string, std::optional<Binary>> finalists;  ///< for the finals; without a binary: being compiled

  TaskTransfer transfer{};

  // Once there is time left.
  Deepening deepening = Deepening::none;  ///< what the turn is for that it has
  std::optional<Config> winner{};         ///< of the last finals, or of the search where there was no time for any
  OpenFinals open_finals{};               ///< of the last finals
  int finals_again = 0;                   ///< that were held again
  NeighbourRecord near_winner{};          ///< of this winner
  bool no_neighbour_left = false;         ///< of this winner and those of the kernel's other shapes
  double best_before_us = 0;              ///< that turn
  std::size_t trying = 0;                 ///< neighbours in it
  double expected_share = 0;              ///< of the time, that it may save

  /// A configuration of the search as it is stored.
  struct Stored {
    ContextIds context;
    Config config;            ///< the kernel's own
    bool is_default = false;  ///< of the kernel's space, whatever compiles it
  };
  [[nodiscard]] Stored stored(const Config& config) const;
  /// A trial of the search as it is stored in the context of `stored(trial.config)`.
  [[nodiscard]] Trial stored_trial(Trial trial) const;

  /// Whether finalists are being compiled.
  [[nodiscard]] bool misses_finalists() const;
  /// The winners of what it launches, as far as they are not the defaults.
  [[nodiscard]] std::string winners_launched() const;
  /// True if not all configurations were measured that have to be compared.
  [[nodiscard]] bool lacks_alternatives() const noexcept {
    return tunable.compares_all() && (!search.spent() || search.open() > 0);
  }
  /// True if it waits for its first look of this run and has not made way for others.
  [[nodiscard]] bool fresh() const noexcept { return untried() && put_off_s == 0; }
  /// Whether it waits for its first look of this run.
  [[nodiscard]] bool untried() const noexcept { return !over() && !looked_at; }
  /// Whether nothing is to be done on it as things stand.
  [[nodiscard]] bool over() const noexcept { return reserved || state.over(); }
  /// Whether its search has nothing more to try, or expects too little of it.
  [[nodiscard]] bool at_its_end() const noexcept {
    return search.little_left() || (search.spent() && search.open() == 0);
  }
  /// Seconds of a device that one more trial takes, by those before; nothing if there were none.
  [[nodiscard]] std::optional<double> trial_s() const noexcept {
    return measured > 0 ? std::optional(spent_s / measured) : std::nullopt;
  }
  /// Whom finals compare: those of the search; where they are held again by time alone, of them what the last ones left
  /// open, and the baseline.
  [[nodiscard]] std::vector<Config> wanted_finalists(bool by_time_alone) const;
};

}  // namespace pascaline
