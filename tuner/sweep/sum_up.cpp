#include "tuner/sweep/sum_up.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/util/counted.hpp"
#include "tuner/sweep/phase_times.hpp"

namespace pascaline {
namespace {

// Returns one line for each weakly checked output, for all its shapes together.
std::vector<std::string> weak_checks_of(const DevicePlan& plan) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> problems;  // by kernel and sentence
  for (const auto& task : plan.tasks()) {
    const Problem& problem = task->search.wanted().problem;
    for (const std::string& weak : task->reference.weak_checks) {
      problems[{problem.kernel, weak}].push_back(problem.text());
    }
  }
  std::vector<std::string> lines;
  for (const auto& [key, of] : problems) {
    const std::string others = of.size() == 1 ? "" : fmt::format(" and {}", counted(of.size() - 1, "other shape"));
    lines.push_back(fmt::format("{}{}: {}", of.front(), others, key.second));
  }
  return lines;
}

}  // namespace

void sum_up(SweepState& sweep) {
  SweepSummary& summary = sweep.summary;
  for (const ScheduledDevice& scheduled : sweep.devices) {
    const WorkerTimes& times = scheduled.scheduler->lab().times();
    summary.times.busy_s += times.total_ms() / 1000;
    summary.times.opening_s += times.opening_ms / 1000;
    summary.times.preparing_s += times.preparing_ms / 1000;
    summary.times.finals_s += times.finals_ms / 1000;
    summary.times.waited_s += scheduled.scheduler->lab().waited_ms() / 1000;
    summary.times.paused_s += scheduled.polite != nullptr ? scheduled.polite->paused_s() : 0;
    if (const auto& end = scheduled.scheduler->end()) {
      summary.end.gave_up = summary.end.gave_up || end->gave_up;
      summary.end.remedy = summary.end.remedy.empty() ? end->remedy : summary.end.remedy;
      summary.end.reason +=
          fmt::format("{}{}: {}", summary.end.reason.empty() ? "" : "; ", scheduled.scheduler->device(), end->reason);
    }
  }
  for (const auto& plan : sweep.plans) {
    summary.times.compile_s += plan->builds().compile_ms() / 1000;
  }
  sweep.recorder.persist([&](Store& store) {
    summary.times.trials = {};
    for (const TrialTimes& times : store.trial_times(summary.run)) {
      summary.times.trials += times;
    }
    static_cast<TrialCounts&>(summary) = {};
    const std::map<std::int64_t, TrialCounts> counts = counts_by_session(store);
    for (const SessionRow& session : store.sessions()) {
      const auto known = counts.find(session.id);
      if (session.run_uuid == summary.run && known != counts.end()) {
        summary += known->second;
      }
    }
  });
  summary.problems.not_reached = sweep.not_reached();
  for (const auto& plan : sweep.plans) {
    summary.problems.exhausted += static_cast<int>(std::ranges::count_if(
        plan->tasks(), [](const auto& task) { return task->search.little_left() && !task->search.wanted().between; }));
    for (const auto& task : plan->tasks()) {
      if (const std::string doubt = task->reference.agreement.doubt(task->tunable.own_space->reference);
          !doubt.empty()) {
        summary.problems.doubts.push_back(fmt::format("{}: {}", task->search.wanted().problem.text(), doubt));
      }
    }
    for (std::string& doubt : weak_checks_of(*plan)) {
      summary.problems.doubts.push_back(std::move(doubt));
    }
    PlanTimes times = plan_times(*plan, sweep.recorder, static_cast<double>(sweep.time.spent_ms()) / 1000);
    summary.problems.planned += static_cast<int>(plan->problems());
    summary.problems.decided += times.decided;
    std::ranges::move(times.phases, std::back_inserter(summary.phases));
    if (times.model) {
      summary.models.push_back(std::move(*times.model));
    }
    if (has_time_limit(sweep.options)) {
      const double missing_s = seconds_for(plan->agenda().first_looks(std::nullopt), sweep.devices_of(*plan));
      summary.forecast.missing_s = std::max(summary.forecast.missing_s.value_or(0), missing_s);
    }
  }
  summary.times.wall_s = sweep.time.here_s();
}

}  // namespace pascaline
