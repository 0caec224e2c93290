#pragma once

#include <functional>
#include <map>

#include "core/util/sweep_clock.hpp"

namespace pascaline {

/// A clock that advances in `wait_until`, without real waiting, and by each look at it where work is to take time.
class SimulatedClock final : public SweepClock {
 public:
  [[nodiscard]] TimePoint now() const override { return now_ += look_; }
  [[nodiscard]] std::chrono::system_clock::time_point wall() const override {
    return wall_ + std::chrono::duration_cast<std::chrono::system_clock::duration>(now() - TimePoint{});
  }
  void wait_until(TimePoint time, std::vector<pollfd> wakeups) override;

  /// Seconds since it was made.
  [[nodiscard]] double elapsed_s() const { return seconds_since(TimePoint{}); }
  /// Has `event` happen when that many seconds have passed: an interrupt, the loss of a worker, a card that throttles.
  void at(double elapsed_s, std::function<void()> event);
  /// Has each look at the clock take that long: so does what is done between two looks.
  void pass_with_each_look(double seconds);

 private:
  mutable TimePoint now_{};
  TimePoint::duration look_{};
  std::chrono::system_clock::time_point wall_ = std::chrono::system_clock::now();
  std::multimap<TimePoint, std::function<void()>> events_;
};

/// Seconds as a duration of these clocks.
[[nodiscard]] SweepClock::TimePoint::duration clock_seconds(double seconds);

}  // namespace pascaline
