#include "tuner/sweep/phase_times.hpp"

#include <algorithm>
#include <optional>

namespace pascaline {
namespace {

PhaseTime& entry_of(std::vector<PhaseTime>& times, const std::string& device, const std::string& phase) {
  const auto found =
      std::find_if(times.begin(), times.end(), [&](const PhaseTime& time) { return time.phase == phase; });
  if (found != times.end()) {
    return *found;
  }
  times.emplace_back();
  times.back().device = device;
  times.back().phase = phase;
  return times.back();
}

// Each compiler may have a winner.
std::optional<Store::Decision> best_decision(const SweepTask& task, SweepRecorder& recorder) {
  std::optional<Store::Decision> best;
  for (const ContextIds& context : task.contexts) {
    const auto decision = recorder.persist([&](Store& store) { return store.decision(context); });
    if (decision && (!best || decision->time.median_us < best->time.median_us)) {
      best = decision;
    }
  }
  return best;
}

}  // namespace

std::vector<PhaseTime> phase_times(const DevicePlan& plan, SweepRecorder& recorder) {
  std::vector<PhaseTime> times;
  for (const auto& task : plan.tasks()) {
    const std::vector<PhaseCalls>& phases = task->search.wanted().phases;
    if (phases.empty()) {
      continue;
    }
    const auto decision = best_decision(*task, recorder);
    for (const PhaseCalls& phase : phases) {
      PhaseTime& time = entry_of(times, plan.info().name, phase.phase);
      time.calls += phase.count;
      if (decision && decision->baseline) {
        time.before_us += phase.count * decision->baseline->median_us;
        time.after_us += phase.count * decision->time.median_us;
        ++time.problems;
      } else {
        ++time.without_times;
      }
    }
  }
  std::stable_sort(times.begin(), times.end(), [](const PhaseTime& a, const PhaseTime& b) {
    return rank_of_phase(a.phase) < rank_of_phase(b.phase);
  });
  return times;
}

}  // namespace pascaline
