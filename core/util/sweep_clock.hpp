#pragma once

#include <poll.h>

#include <chrono>
#include <vector>

#include "core/util/deadline.hpp"

namespace pascaline {

/// The clock of a sweep, which waits only in `wait_until`.
class SweepClock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  SweepClock() = default;
  SweepClock(const SweepClock&) = delete;
  SweepClock& operator=(const SweepClock&) = delete;
  virtual ~SweepClock() = default;

  [[nodiscard]] virtual TimePoint now() const = 0;
  [[nodiscard]] virtual std::chrono::system_clock::time_point wall() const = 0;
  /// Returns at `time`, or before it when one of the descriptors in `wakeups` is ready.
  virtual void wait_until(TimePoint time, std::vector<pollfd> wakeups) = 0;

  [[nodiscard]] double seconds_since(TimePoint start) const {
    return std::chrono::duration<double>(now() - start).count();
  }
  /// For deadlines by this clock, which must outlive them.
  [[nodiscard]] DeadlineClocks deadline_clocks() const {
    return {[this] { return now(); }, [this] { return wall(); }};
  }
};

/// The machine's own clocks.
class MachineClock final : public SweepClock {
 public:
  [[nodiscard]] TimePoint now() const override { return std::chrono::steady_clock::now(); }
  [[nodiscard]] std::chrono::system_clock::time_point wall() const override { return std::chrono::system_clock::now(); }
  void wait_until(TimePoint time, std::vector<pollfd> wakeups) override;
};

}  // namespace pascaline
