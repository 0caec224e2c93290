#pragma once

#include <optional>
#include <string>

#include "tuner/sweep/sweep_progress.hpp"
#include "tuner/sweep/sweep_state.hpp"

namespace pascaline {

/// The loop of a sweep: a single thread that feeds compilers and devices, which are separate processes, and stores
/// their answers.
class SweepRun {
 public:
  /// `sweep`, which was begun, must outlive it.
  explicit SweepRun(SweepState& sweep);

  /// Runs the plan to its end. Call it once.
  [[nodiscard]] SweepSummary run();

 private:
  void work();
  void check_any_left() const;
  void check_search();
  void feed();
  void make_way(const ScheduledDevice& scheduled);
  void report_missing_readings();
  [[nodiscard]] bool all_paused() const;
  [[nodiscard]] bool closing() const;
  [[nodiscard]] bool any_untried() const;
  [[nodiscard]] bool done(bool closing) const;
  void take_compiled();
  void wait();
  [[nodiscard]] std::optional<Slice> slice(const DevicePlan& plan) const;
  void finish(const std::string& state);
  void end_failed() noexcept;

  SweepState& sweep_;
  SweepProgress progress_;
  std::optional<SweepClock::TimePoint> over_at_{};  ///< when the time was found to be over
  bool closing_ = false;
};

}  // namespace pascaline
