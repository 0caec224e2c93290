#pragma once

#include <cstdint>
#include <optional>

#include "tuner/sweep/sweep_state.hpp"

namespace pascaline {

/// Shows a running sweep to its caller and, through the database, to other processes.
class SweepProgress {
 public:
  /// `sweep`, which was begun, must outlive it.
  explicit SweepProgress(SweepState& sweep) : sweep_(sweep) {}

  /// Reports how far the sweep is, unless it did so a moment ago and this is not the `last` time.
  void report(bool last);
  /// Trials since the sweep was begun.
  [[nodiscard]] std::int64_t trials_made() const { return sweep_.summary.trials - trials_at_start_; }

 private:
  [[nodiscard]] std::optional<double> eta_s() const;
  [[nodiscard]] SweepView view(bool last) const;
  void check_database();

  SweepState& sweep_;
  std::int64_t trials_at_start_ = sweep_.summary.trials;
  std::uint64_t database_inode_ = 0;
  SweepClock::TimePoint viewed_{};
  SweepClock::TimePoint noted_{};
};

}  // namespace pascaline
