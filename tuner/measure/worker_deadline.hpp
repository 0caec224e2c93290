#pragma once

#include <chrono>
#include <string>

#include "tuner/measure/measure_jobs.hpp"

namespace pascaline {

/// How long a measurement worker may be silent: by the phase of its work, longer while the governor keeps it waiting,
/// and not counting time in which this process itself did not run.
class WorkerDeadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit WorkerDeadline(const MeasureClientOptions& options)
      : patience_(options.patience),
        kernel_timeout_s_(options.kernel_timeout_s),
        sampling_s_(options.measure.budget_ms / 1000),
        preheat_s_(options.governor.preheat_limit_s),
        pause_s_(options.governor.pause_limit_s) {}

  void allow_start();   ///< opening the device
  void allow_load();    ///< a binary, and whatever comes next
  void allow_inputs();  ///< inputs and references of a problem
  /// A phase of a trial, as the worker names it; false if there is no such. `best_us`: the best time so far, 0 if none.
  [[nodiscard]] bool allow_phase(const std::string& phase, double best_us);
  void allow_finalist(double best_us);  ///< a finalist's turn
  /// It has nothing to do.
  void clear() noexcept { at_ = Clock::time_point::max(); }
  /// The governor waits: so does the deadline, but not for ever.
  void wait_for_card();
  /// Called each time that the worker is looked at: what passed since the last time, if it is long, counts for nobody.
  void forgive_absence();

  [[nodiscard]] bool running() const noexcept { return at_ != Clock::time_point::max(); }
  [[nodiscard]] bool passed() const { return Clock::now() >= at_; }
  [[nodiscard]] Clock::time_point at() const noexcept { return at_; }
  /// Seconds that the present phase was given.
  [[nodiscard]] double allowed_s() const noexcept { return allowed_s_; }

 private:
  void allow(double limit_s);
  [[nodiscard]] double launch_limit_s(double best_us) const;

  double patience_;
  double kernel_timeout_s_;
  double sampling_s_;
  double preheat_s_;
  double pause_s_;
  double allowed_s_ = 0;
  Clock::time_point at_ = Clock::time_point::max();
  Clock::time_point paused_until_ = Clock::time_point::max();  ///< the longest the governor may keep it waiting
  Clock::time_point looked_at_ = Clock::now();
};

}  // namespace pascaline
