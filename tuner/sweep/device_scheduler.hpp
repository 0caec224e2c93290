#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/util/deadline.hpp"
#include "db/store.hpp"
#include "tuner/services/services.hpp"
#include "tuner/sweep/budget.hpp"
#include "tuner/sweep/device_plan.hpp"
#include "tuner/sweep/device_status.hpp"
#include "tuner/sweep/sweep.hpp"
#include "tuner/sweep/sweep_recorder.hpp"
#include "tuner/sweep/sweep_view.hpp"

namespace pascaline {

/// How long a problem may keep a device before the plan is looked at again.
struct Slice {
  double wanted_s = 0;          ///< with a few trials at least
  double longest_s = 0;         ///< in any case
  double finals_s = 0;          ///< for the finals after it
  double left_s = 0;            ///< until the sweep ends
  bool others_untried = false;  ///< a few trials are enough, and a problem without any makes room for those
};

/// Works on a plan with one device: takes a task at a time, hands its configurations to the device's lab, finals
/// after them, and gives what comes back to the recorder. Of the tasks it changes only the one it has taken.
class DeviceScheduler {
 public:
  /// All must outlive it.
  DeviceScheduler(DevicePlan& plan, SweepRecorder& recorder, const SweepOptions& options, const SweepServices& services,
                  const DeviceInfo& device, std::int64_t session, const Deadline& deadline);

  /// See Lab::warm_up.
  void warm_up() { lab_->warm_up(); }
  /// Gives the device what there is to do. With `closing` no new trial is begun, only finals of what was measured; with
  /// `stopping` nothing at all.
  void feed(bool closing, bool stopping, const std::optional<Slice>& slice);
  /// Leaves the device to others, with the reason, or takes it again with an empty one. What is being measured is
  /// measured to its end; the time until then and after it is no problem's share. Call it before each `feed`.
  void pause(const std::string& reason);
  /// The sweep's time is up: no more is begun, and what would not be over at once is ended; with `at_once` everything
  /// is. What was not decided in finals is decided from the search's trials.
  void run_out(bool at_once);
  /// What the finals of the present problem and the trials before them need of the time that is left, of a limit of
  /// `limit_s` in all; 0 if there is nothing to compare.
  [[nodiscard]] double reserve_s(double limit_s) const;
  /// Deals with what the device's lab tells.
  void pump();

  /// Whether nothing is on the device or on its way there.
  [[nodiscard]] bool quiet() const noexcept { return !lab_->busy(); }
  [[nodiscard]] bool idle() const noexcept { return task_ == nullptr && quiet(); }
  [[nodiscard]] bool ended() const noexcept { return lab_->ended(); }
  [[nodiscard]] const Lab& lab() const noexcept { return *lab_; }
  [[nodiscard]] std::int64_t session() const noexcept { return session_; }
  [[nodiscard]] const std::string& device() const noexcept { return status_.device(); }
  [[nodiscard]] const std::string& end_reason() const noexcept { return end_reason_; }
  [[nodiscard]] bool gave_up() const noexcept { return gave_up_; }
  /// MeasuringEnded::remedy.
  [[nodiscard]] const std::string& remedy() const noexcept { return remedy_; }
  [[nodiscard]] DeviceProgress view() const;
  /// Readings since the last call.
  [[nodiscard]] std::vector<TelemetryRow> take_telemetry() { return status_.take_telemetry(); }

 private:
  /// How far the lab is with the task's problem.
  enum class Preparation : std::uint8_t { none, sent, ready };
  /// A device's turn at a task.
  struct Turn {
    SweepClock::TimePoint start{};
    int done_at_start = 0;
    bool ran = false;              ///< one of its configurations, since
    bool had_little_left = false;  ///< when it began
    double expected_s = 0;         ///< Agenda::expected_s when it began
    Preparation preparation = Preparation::none;
  };
  /// Finals that are being gathered or run.
  struct Finals {
    bool last = false;                  ///< the search is over: nothing is to be done after them
    bool shared = false;                ///< their time, with problems that were not looked at
    bool cut = false;                   ///< fewer finalists or rounds than are wanted
    std::optional<double> allowed_s{};  ///< for all of them
    std::vector<Config> on_device{};
  };

  // Turns at tasks.
  void take_task();
  [[nodiscard]] bool set_problem();
  void feed_trials(const std::optional<Slice>& slice);
  void end_search(bool search_over, bool closing, const std::optional<Slice>& slice);
  [[nodiscard]] int turn_trials() const { return task_->search.done() - turn_.done_at_start; }
  [[nodiscard]] double turn_s() const { return clock_.seconds_since(turn_.start); }
  [[nodiscard]] bool turn_over(const std::optional<Slice>& slice) const;
  [[nodiscard]] double longest_turn_s(const Slice& slice) const;
  [[nodiscard]] double trial_s() const;
  void put_off();
  void take_back();
  void end_attempt(const Config& config);
  void leave_preparing();
  void stop();
  void release_task(bool over);
  void tell_deepening() const;
  void tell_other_reference() const;
  void end_deepening();
  void leave_out(const std::string& reason);

  // What the lab tells.
  void on_trial(const TrialDone& done);
  void on_cut(const TrialCut& cut);
  void on_finals(const FinalsDone& done);
  void on_finalist_failed(const FinalistFailed& failed);
  void on_restarted(const WorkerRestarted& restarted);
  void on_ended(const MeasuringEnded& ended);

  // Finals, what is compared in how much time: device_scheduler_finals.cpp.
  static constexpr const char* kNotAllWays = "not all ways to compute it were measured";
  void begin_finals(bool last, std::optional<double> allowed_s);
  [[nodiscard]] bool fit_in_time(FinalsJob& job, std::size_t& most);
  void send_finals();
  void end_finals_attempts();
  void drop_finals();
  std::int64_t add_trial(const Trial& trial);
  void release_for_later();
  [[nodiscard]] FinalsNeed finals_need() const;
  [[nodiscard]] FinalsOptions finals_options() const;
  [[nodiscard]] bool by_time_alone() const;
  [[nodiscard]] bool takes_energies() const;
  [[nodiscard]] double min_finals_s() const;
  [[nodiscard]] double finals_reserve_s(double limit_s) const;
  [[nodiscard]] double energies_s() const;
  [[nodiscard]] double objective_s() const;
  [[nodiscard]] double wanted_finals_s(double share_s, double left_s) const;

  // What is decided by time: device_scheduler_decision.cpp.
  // What is decided in view of what the database has for the same key is read and stored in one transaction, and told
  // when that is over.
  using Notes = std::vector<std::string>;
  void recall_standing(const Store& store);
  [[nodiscard]] std::optional<StandingDecision> standing() const;
  [[nodiscard]] FinalsOptions decision_options() const;
  [[nodiscard]] FinalsResult heed_later_decisions(const Store& store, FinalsResult result, Notes& notes);
  [[nodiscard]] bool is_better_elsewhere(const Store& store, const ContextIds& context,
                                         const FinalsResult& result) const;
  void announce(const FinalsResult& decided, const std::vector<std::int64_t>& ids);
  void tell_winner(const FinalsResult& result);
  [[nodiscard]] std::optional<FinalsResult> decide_and_store(Store& store, const FinalsResult& decided,
                                                             const std::vector<std::int64_t>& ids, Notes& notes);
  void store_others(Store& store, const FinalsResult& result, const std::vector<std::int64_t>& ids, Notes& notes);
  void store_decision(Store& store, const ContextIds& context, const FinalsResult& result, std::int64_t trial,
                      Notes& notes) const;
  void note_decision(const FinalsResult& result);
  [[nodiscard]] bool decided_in_finals(const Store& store, const Config& config) const;
  void decide_without_finals();

  // What is decided by another objective: device_scheduler_objective.cpp.
  [[nodiscard]] bool lacks_objective() const;
  [[nodiscard]] bool tell_undecided(const ObjectiveDecision& decision);
  [[nodiscard]] bool was_not_compared(const Store& store, const ContextIds& context, const FinalsResult& result) const;
  void store_by_objective(const ObjectiveDecision& decided, const FinalsResult& result,
                          std::optional<std::size_t> baseline, const std::vector<std::int64_t>& ids);
  void announce_by_objective(const FinalsResult& result, const std::vector<std::int64_t>& ids);

  DevicePlan& plan_;
  SweepRecorder& recorder_;
  const SweepOptions& options_;
  const SweepClock& clock_;
  std::unique_ptr<Lab> lab_;
  std::int64_t session_;
  DeviceStatus status_;
  SweepTask* task_ = nullptr;
  Turn turn_;
  Finals finals_;
  std::optional<double> left_s_{};  ///< until the sweep ends, when it was last told
  std::map<std::uint64_t, Config> on_device_;
  std::uint64_t next_job_ = 1;
  std::string end_reason_;
  bool gave_up_ = false;
  std::string remedy_;
  std::string pause_reason_;
  SweepClock::TimePoint paused_until_{};  ///< the last look at a pause
};

}  // namespace pascaline
