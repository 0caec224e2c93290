#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "db/store.hpp"
#include "tuner/device_group.hpp"
#include "tuner/measure_lane.hpp"
#include "tuner/sweep.hpp"
#include "tuner/sweep_ledger.hpp"
#include "tuner/sweep_view.hpp"

namespace pascaline {

/// How long a problem may keep a lane before the plan is looked at again.
struct Slice {
  double wanted_s = 0;   ///< with a few trials at least
  double longest_s = 0;  ///< in any case
};

/// Works off a group's plan on one device: hands its lane configurations, finals after them, and writes what comes back
/// into the ledger.
class LaneRunner {
 public:
  using Clock = std::chrono::steady_clock;

  /// All must outlive it.
  LaneRunner(DeviceGroup& group, SweepLedger& ledger, const SweepOptions& options, const DeviceInfo& device,
             std::int64_t session);

  /// See MeasureLane::warm_up.
  void warm_up() { lane_.warm_up(); }
  /// Gives the lane what there is to do. With `closing` no new trial is begun, only finals of what was measured; with
  /// `stopping` nothing at all.
  void feed(bool closing, bool stopping, const std::optional<Slice>& slice);
  /// Deals with what the lane tells.
  void pump();
  /// Settled without the device: rejected, not compiled, or same code.
  void store_settled(SweepTask& task, const ProblemSearch::Settled& settled);

  /// Whether nothing is on the device or on its way there.
  [[nodiscard]] bool quiet() const noexcept { return !lane_.busy(); }
  [[nodiscard]] bool idle() const noexcept { return task_ == nullptr && quiet(); }
  [[nodiscard]] bool ended() const noexcept { return lane_.ended(); }
  [[nodiscard]] const MeasureLane& lane() const noexcept { return lane_; }
  [[nodiscard]] const SweepTask* task() const noexcept { return task_; }
  [[nodiscard]] std::int64_t session() const noexcept { return session_; }
  [[nodiscard]] const std::string& device() const noexcept { return view_.device; }
  [[nodiscard]] const std::string& ended_because() const noexcept { return ended_because_; }
  [[nodiscard]] bool gave_up() const noexcept { return gave_up_; }
  [[nodiscard]] LaneView view() const;
  /// Readings since the last call.
  [[nodiscard]] std::vector<TelemetryRow> take_telemetry();
  /// Mean time of finals so far, in seconds.
  [[nodiscard]] double finals_s() const noexcept { return finals_count_ > 0 ? finals_total_s_ / finals_count_ : 2; }

 private:
  struct OnDevice {
    Config config;
    std::string run_key;
  };

  void stop();
  void drop_finals();
  void take_task();
  void release_task(bool over);
  [[nodiscard]] bool set_problem();
  void feed_trials();
  [[nodiscard]] bool slice_over(const std::optional<Slice>& slice) const;
  void begin_finals(bool over_after);
  void send_finals();
  void take_back();
  void on_trial(const TrialDone& done);
  void on_finals(const FinalsDone& done);
  void on_finalist_failed(const FinalistFailed& failed);
  void on_refused(const std::string& reason);
  void on_telemetry(const LaneTelemetry& telemetry);
  void on_ended(const LaneEnded& ended);
  void store_trial(SweepTask& task, const Trial& trial, const std::string& run_key);

  DeviceGroup& group_;
  SweepLedger& ledger_;
  const SweepOptions& options_;
  MeasureLane lane_;
  std::int64_t session_;
  SweepTask* task_ = nullptr;
  bool problem_set_ = false;
  bool prepared_ = false;
  enum class Stage : std::uint8_t { searching, gathering, finals };
  Stage stage_ = Stage::searching;
  bool over_after_finals_ = false;
  Clock::time_point slice_start_;
  int slice_trials_ = 0;
  std::map<std::uint64_t, OnDevice> on_device_;
  std::vector<Config> in_finals_;
  std::uint64_t next_job_ = 1;
  std::vector<TelemetryRow> telemetry_;
  LaneView view_;
  std::string ended_because_;
  bool gave_up_ = false;
  Clock::time_point finals_start_;
  double finals_total_s_ = 0;
  int finals_count_ = 0;
};

}  // namespace pascaline
