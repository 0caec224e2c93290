#include "tuner/simulation/simulated_clock.hpp"

#include <algorithm>
#include <utility>

namespace pascaline {

SweepClock::TimePoint::duration clock_seconds(double seconds) {
  return std::chrono::duration_cast<SweepClock::TimePoint::duration>(std::chrono::duration<double>(seconds));
}

void SimulatedClock::wait_until(TimePoint time, std::vector<pollfd> /*wakeups*/) {
  if (!events_.empty() && events_.begin()->first <= time) {
    auto next = events_.extract(events_.begin());
    now_ = std::max(now_, next.key());
    next.mapped()();
    return;
  }
  now_ = std::max(now_, time);
}

void SimulatedClock::pass_with_each_look(double seconds) { look_ = clock_seconds(seconds); }

void SimulatedClock::at(double elapsed_s, std::function<void()> event) {
  events_.emplace(TimePoint{} + clock_seconds(elapsed_s), std::move(event));
}

}  // namespace pascaline
