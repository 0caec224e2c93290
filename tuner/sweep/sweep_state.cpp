#include "tuner/sweep/sweep_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "tuner/sweep/stop_text.hpp"

namespace pascaline {

void SweepTime::limit(const SweepOptions& options) {
  const double spent_s = static_cast<double>(spent_ms()) / 1000;
  const std::optional<double> left_s =
      options.budget_s ? std::optional(std::max(0.0, *options.budget_s - spent_s)) : std::nullopt;
  deadline = Deadline(left_s, options.until, clock.deadline_clocks());
  limit_s = deadline.left_s();
}

std::int64_t SweepTime::spent_ms() const {
  return earlier_ms + std::chrono::duration_cast<std::chrono::milliseconds>(clock.now() - started).count();
}

SweepState::SweepState(const SweepOptions& sweep_options, const SweepEvents& events,
                       const std::atomic<bool>& wants_stop, const SweepServices& sweep_services)
    : options(sweep_options),
      stop(wants_stop),
      services(sweep_services),
      time{*services.clock},
      store(options.database, OpenMode::create),
      recorder(store, summary, events, stop, options.waits.database_wait_s) {
  store.set_busy_timeout(
      std::chrono::milliseconds(static_cast<std::int64_t>(1000 * std::min(1.0, options.waits.database_wait_s))));
}

// Reports at once, even while devices work: a launch that hangs is only ended at its limit.
void SweepState::report_stop() {
  if (!stop || std::exchange(stop_reported, true)) {
    return;
  }
  StopWait wait;
  for (const ScheduledDevice& scheduled : devices) {
    if (scheduled.scheduler->quiet() || scheduled.scheduler->ended()) {
      continue;
    }
    const bool in_finals = scheduled.scheduler->view().stage.starts_with("finals");
    (in_finals ? wait.finals : wait.trials) += 1;
    const auto wakes_at = scheduled.scheduler->lab().wakes_at();
    if (wakes_at != SweepClock::TimePoint::max()) {
      wait.at_most_s = std::max(wait.at_most_s, std::chrono::duration<double>(wakes_at - time.clock.now()).count());
    }
  }
  recorder.note(stop_text(wait));
}

double SweepState::devices_of(const DevicePlan& plan) const {
  return static_cast<double>(
      std::ranges::count_if(devices, [&](const ScheduledDevice& scheduled) { return scheduled.plan == &plan; }));
}

std::vector<std::string> SweepState::not_reached() const {
  std::vector<std::string> names;
  for (const auto& plan : plans) {
    for (const auto& task : plan->tasks()) {
      if (task->unreached()) {
        names.push_back(task->search.wanted().problem.text() +
                        (plans.size() > 1 ? fmt::format(" on {}", plan->info().name) : ""));
      }
    }
  }
  return names;
}

}  // namespace pascaline
