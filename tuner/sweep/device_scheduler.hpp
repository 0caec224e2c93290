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
#include "tuner/sweep/device_plan.hpp"
#include "tuner/sweep/device_status.hpp"
#include "tuner/sweep/finals_turn.hpp"
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
  /// Decides likewise what was measured in earlier turns and came to no finals. At the end of the sweep.
  void decide_rest();
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
  /// Why nothing more can be measured on the device; nothing as long as it can.
  [[nodiscard]] const std::optional<MeasuringEnded>& end() const noexcept { return end_; }
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
  /// Trials that the lab has.
  struct SentTrials {
    std::map<std::uint64_t, Config> configs{};  ///< by the job's number
    std::uint64_t next = 1;
  };
  struct Pause {
    std::string reason{};  ///< empty: there is none
    SweepClock::TimePoint looked_at{};
  };

  // Turns at tasks.
  void take_task();
  [[nodiscard]] bool set_problem();
  void feed_trials(const std::optional<Slice>& slice);
  void end_turn(std::optional<FinalsTurn::End> end);
  void end_search(bool search_over, bool closing, const std::optional<Slice>& slice);
  [[nodiscard]] int turn_trials() const { return task_->search.done() - turn_.done_at_start; }
  [[nodiscard]] double turn_s() const { return clock_.seconds_since(turn_.start); }
  [[nodiscard]] bool turn_over(const std::optional<Slice>& slice) const;
  [[nodiscard]] double longest_turn_s(const Slice& slice) const;
  [[nodiscard]] double trial_s() const;
  void put_off();
  void take_back();
  void leave_preparing();
  void stop();
  void release_task(bool over);
  void report_deepening() const;
  void tell_other_reference() const;
  void end_deepening();
  void leave_out(const std::string& reason);

  // What the lab tells.
  void on_trial(const TrialDone& done);
  void on_cut(const TrialCut& cut);
  void on_restarted(const WorkerRestarted& restarted);
  void on_ended(const MeasuringEnded& ended);

  DevicePlan& plan_;
  SweepRecorder& recorder_;
  const SweepOptions& options_;
  const SweepClock& clock_;
  std::unique_ptr<Lab> lab_;
  std::int64_t session_;
  DeviceStatus status_;
  SweepTask* task_ = nullptr;
  Turn turn_;
  FinalsTurn finals_;
  std::optional<double> left_s_{};  ///< until the sweep ends, when it was last told
  SentTrials sent_{};
  std::optional<MeasuringEnded> end_{};
  Pause pause_{};
};

}  // namespace pascaline
