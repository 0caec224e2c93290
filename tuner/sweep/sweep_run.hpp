#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/util/deadline.hpp"
#include "db/store.hpp"
#include "tuner/sweep/device_claim.hpp"
#include "tuner/sweep/device_plan.hpp"
#include "tuner/sweep/device_scheduler.hpp"
#include "tuner/sweep/sweep.hpp"
#include "tuner/sweep/sweep_recorder.hpp"

namespace pascaline {

/// One call of `run_sweep`: a single thread that feeds compilers and devices, which are processes of their own, and
/// stores what they answer.
class SweepRun {
 public:
  /// Plans, begins or takes up the sessions, and tells the plan; all references must outlive it.
  SweepRun(const std::vector<Space>& spaces, const std::vector<SweepProblem>& problems, const SweepOptions& options,
           const SweepEvents& events, const std::atomic<bool>& stop, const SweepServices& services);

  /// Works the plan off, once.
  [[nodiscard]] SweepSummary run();

 private:
  struct ScheduledDevice {
    DevicePlan* plan = nullptr;
    std::unique_ptr<DeviceScheduler> scheduler;
    std::unique_ptr<PoliteWatch> polite;  ///< null: it makes way for nobody
  };

  [[nodiscard]] std::vector<SessionRow> earlier_sessions();
  void warn_of_others(const DeviceInfo& device);
  void add_device(DevicePlan& plan, const DeviceInfo& device);
  void count_earlier_trials();
  [[nodiscard]] bool has_compiler(const StoredTrial& stored) const;
  void check_search();
  void report_stop();
  void start_clock();
  void check_planning_time(std::size_t problems);
  [[nodiscard]] std::optional<double> expected_s() const;
  void tell_plan();
  void report_forecast();
  [[nodiscard]] double devices_of(const DevicePlan& plan) const;

  void work();
  void sum_up();
  void check_any_left() const;
  void feed();
  void make_way(const ScheduledDevice& scheduled);
  void tell_what_nobody_tells();
  [[nodiscard]] bool all_paused() const;
  [[nodiscard]] bool closing() const;
  [[nodiscard]] bool any_untried() const;
  [[nodiscard]] std::vector<std::string> not_reached() const;
  [[nodiscard]] bool done(bool closing) const;
  void take_compiled();
  void wait();
  [[nodiscard]] std::optional<Slice> slice(const DevicePlan& plan) const;
  [[nodiscard]] std::optional<double> eta_s() const;
  [[nodiscard]] SweepView view(bool last) const;
  [[nodiscard]] std::int64_t spent_ms() const;
  void tell(bool last);
  void look_for_database();
  void finish(const std::string& state);
  void end_failed() noexcept;

  const SweepServices& services_;
  SweepClock& clock_ = *services_.clock;
  SweepClock::TimePoint started_ = clock_.now();
  const SweepOptions& options_;
  const SweepEvents& events_;
  const std::atomic<bool>& stop_;
  SweepSummary summary_;
  Store store_;
  SweepRecorder recorder_;
  std::vector<SessionRow> earlier_;
  std::int64_t earlier_spent_ms_ = 0;
  std::vector<DeviceClaim> claims_;  ///< of GPUs
  std::vector<SessionRow> others_;   ///< of sweeps of other processes that are running now
  std::vector<std::unique_ptr<DevicePlan>> plans_;
  std::vector<ScheduledDevice> devices_;
  Deadline deadline_;
  std::optional<double> limit_s_;                         ///< what was left of it at first
  std::optional<SweepClock::TimePoint> over_at_;          ///< when it was found to be over
  std::optional<SweepClock::TimePoint> planned_late_at_;  ///< when that was so before the plan was done
  std::int64_t trials_at_start_ = 0;
  bool closing_ = false;
  bool reported_stop_ = false;
  std::uint64_t database_inode_ = 0;
  SweepClock::TimePoint viewed_{};
  SweepClock::TimePoint noted_{};
};

}  // namespace pascaline
