#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/util/deadline.hpp"
#include "db/store.hpp"
#include "tuner/sweep/device_claim.hpp"
#include "tuner/sweep/device_plan.hpp"
#include "tuner/sweep/device_scheduler.hpp"
#include "tuner/sweep/sweep.hpp"
#include "tuner/sweep/sweep_recorder.hpp"

namespace pascaline {

/// A device of a sweep, with the plan that it works on.
struct ScheduledDevice {
  DevicePlan* plan = nullptr;
  std::unique_ptr<DeviceScheduler> scheduler;
  std::unique_ptr<PoliteWatch> polite;  ///< null: it makes way for no other program
};

/// The time that a run of a sweep has, and has spent.
struct SweepTime {
  SweepClock& clock;
  SweepClock::TimePoint started = clock.now();  ///< of this process
  std::int64_t earlier_ms = 0;                  ///< spent by the run's earlier processes
  Deadline deadline{};
  std::optional<double> limit_s{};  ///< seconds until the deadline when it was set

  /// Sets the deadline. The time counts from the call of `run_sweep`, as opening devices and the database takes time.
  void limit(const SweepOptions& options);
  [[nodiscard]] std::int64_t spent_ms() const;
  /// Seconds of this process.
  [[nodiscard]] double here_s() const { return clock.seconds_since(started); }
};

/// All that a call of `run_sweep` works with.
struct SweepState {
  /// Opens the database; all arguments must outlive it.
  SweepState(const SweepOptions& sweep_options, const SweepEvents& events, const std::atomic<bool>& wants_stop,
             const SweepServices& sweep_services);

  /// Reports, once, that the sweep stops, and what it waits for until then.
  void report_stop();
  /// How many devices work on a plan.
  [[nodiscard]] double devices_of(const DevicePlan& plan) const;
  /// Problems without a trial in this run.
  [[nodiscard]] std::vector<std::string> not_reached() const;

  const SweepOptions& options;
  const std::atomic<bool>& stop;
  const SweepServices& services;
  SweepTime time;
  SweepSummary summary{};
  Store store;
  SweepRecorder recorder;
  std::vector<DeviceClaim> claims{};  ///< of GPUs
  std::vector<std::unique_ptr<DevicePlan>> plans{};
  std::vector<ScheduledDevice> devices{};
  bool stop_reported = false;
};

}  // namespace pascaline
