#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/util/deadline.hpp"
#include "db/store.hpp"
#include "tuner/measure/measure_client.hpp"
#include "tuner/sweep/budget.hpp"
#include "tuner/sweep/device_plan.hpp"
#include "tuner/sweep/sweep.hpp"
#include "tuner/sweep/sweep_recorder.hpp"
#include "tuner/sweep/sweep_view.hpp"

namespace pascaline {

/// How long a problem may keep a lane before the plan is looked at again.
struct Slice {
  double wanted_s = 0;          ///< with a few trials at least
  double longest_s = 0;         ///< in any case
  double finals_s = 0;          ///< for the finals behind it
  double left_s = 0;            ///< until the sweep ends
  bool others_untried = false;  ///< a few trials are enough, and a problem without any makes room for those
};

/// Works off a group's plan on one device: hands its lane configurations, finals after them, and writes what comes back
/// into the recorder.
class DeviceScheduler {
 public:
  using Clock = std::chrono::steady_clock;

  /// All must outlive it.
  DeviceScheduler(DevicePlan& group, SweepRecorder& recorder, const SweepOptions& options, const DeviceInfo& device,
                  std::int64_t session, const Deadline& deadline);

  /// See MeasureClient::warm_up.
  void warm_up() { lane_.warm_up(); }
  /// Gives the lane what there is to do. With `closing` no new trial is begun, only finals of what was measured; with
  /// `stopping` nothing at all.
  void feed(bool closing, bool stopping, const std::optional<Slice>& slice);
  /// The sweep's time is up: no more is begun, and what would not be over at once is ended; with `at_once` everything
  /// is. What was not decided in finals is decided from the search's trials.
  void run_out(bool at_once);
  /// What the finals of the present problem and the trials before them need of the time that is left, of a limit of
  /// `limit_s` in all; 0 if there is nothing to compare.
  [[nodiscard]] double reserve_s(double limit_s) const;
  /// Deals with what the lane tells.
  void pump();
  /// ResolvedTrial without the device: rejected, not compiled, or same code.
  void store_settled(SweepTask& task, const ProblemSearch::ResolvedTrial& settled);

  /// Whether nothing is on the device or on its way there.
  [[nodiscard]] bool quiet() const noexcept { return !lane_.busy(); }
  [[nodiscard]] bool idle() const noexcept { return task_ == nullptr && quiet(); }
  [[nodiscard]] bool ended() const noexcept { return lane_.ended(); }
  [[nodiscard]] const MeasureClient& lane() const noexcept { return lane_; }
  [[nodiscard]] const SweepTask* task() const noexcept { return task_; }
  [[nodiscard]] std::int64_t session() const noexcept { return session_; }
  [[nodiscard]] const std::string& device() const noexcept { return view_.device; }
  [[nodiscard]] const std::string& ended_because() const noexcept { return ended_because_; }
  [[nodiscard]] bool gave_up() const noexcept { return gave_up_; }
  [[nodiscard]] LaneView view() const;
  /// Readings since the last call.
  [[nodiscard]] std::vector<TelemetryRow> take_telemetry();

 private:
  struct OnDevice {
    Config config;
    std::string run_key;
  };

  void stop();
  void drop_finals();
  void take_task(const std::optional<Slice>& slice);
  void put_off();
  void leave_preparing();
  [[nodiscard]] double trial_s() const;
  [[nodiscard]] double least_finals_s() const;
  [[nodiscard]] FinalsNeed finals_need() const;
  void decide_without_finals();
  void announce(const FinalsResult& result, std::int64_t winner);
  void release_task(bool over);
  void release_for_later();
  [[nodiscard]] bool set_problem();
  void feed_trials(const std::optional<Slice>& slice);
  [[nodiscard]] int slice_trials() const { return task_->search.done() - done_at_start_; }
  [[nodiscard]] bool slice_over(const std::optional<Slice>& slice) const;
  void begin_finals(bool over_after, std::optional<double> allowed_s);
  void send_finals();
  void take_back();
  void on_trial(const TrialDone& done);
  void on_cut(TrialCut cut);
  void on_finals(const FinalsDone& done);
  void on_finalist_failed(const FinalistFailed& failed);
  void on_refused(const std::string& reason);
  void on_telemetry(const LaneTelemetry& telemetry);
  void on_ended(const LaneEnded& ended);
  void store_trial(SweepTask& task, const Trial& trial, const std::string& run_key);

  DevicePlan& group_;
  SweepRecorder& recorder_;
  const SweepOptions& options_;
  MeasureClient lane_;
  std::int64_t session_;
  SweepTask* task_ = nullptr;
  bool problem_set_ = false;
  bool prepared_ = false;
  enum class Stage : std::uint8_t { searching, gathering, finals };
  Stage stage_ = Stage::searching;
  bool over_after_finals_ = false;
  bool finals_shared_ = false;  ///< their time, with problems that were not looked at
  bool finals_cut_ = false;     ///< fewer finalists or rounds than are wanted
  Clock::time_point slice_start_;
  int done_at_start_ = 0;
  bool ran_ = false;                        ///< one of its configurations, since
  std::optional<double> left_s_{};          ///< until the sweep ends, when it was last told
  std::optional<double> finals_allowed_s_;  ///< for the finals that are being gathered
  std::map<std::uint64_t, OnDevice> on_device_;
  std::vector<Config> in_finals_;
  std::uint64_t next_job_ = 1;
  std::vector<TelemetryRow> telemetry_;
  LaneView view_;
  std::string ended_because_;
  bool gave_up_ = false;
};

}  // namespace pascaline
