#include "tuner/sweep/phase_times.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "db/decision_history.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline {
namespace {

// Each compiler may have a winner.
std::optional<Store::Decision> best_decision(const SweepTask& task, SweepRecorder& recorder) {
  std::optional<Store::Decision> best;
  for (const ContextIds& context : task.rows.contexts) {
    const auto decision = recorder.persist([&](Store& store) { return store.decision(context); });
    if (decision && (!best || decision->time.median_us < best->time.median_us)) {
      best = decision;
    }
  }
  return best;
}

std::optional<TimeSummary> measured_default(const SweepTask& task, SweepRecorder& recorder) {
  TrialFilter filter;
  filter.trial_id = task.search.trial_of(task.search.bound().default_config());
  if (*filter.trial_id == 0) {
    return std::nullopt;
  }
  const std::vector<StoredTrial> stored = recorder.persist([&](Store& store) { return store.trials(filter); });
  return stored.empty() ? std::nullopt : stored.front().trial.time;
}

// Problems that are called together: by a phase or by the whole model.
class CalledTogether {
 public:
  CalledTogether(const std::string& device, std::string phase) {
    time_.device = device;
    time_.phase = std::move(phase);
  }
  void add(double calls, ModelPart part) {
    part.calls = calls;
    time_.calls += calls;
    if (part.with_winner) {
      ++time_.problems;
    } else {
      ++time_.at_default;
      time_.at_default_us += calls * part.with_default.median_us;
    }
    parts_.push_back(part);
  }
  [[nodiscard]] PhaseTime sum() const {
    PhaseTime time = time_;
    const ModelTime of_parts = model_time(parts_);
    time.before_us = of_parts.default_us;
    time.after_us = of_parts.best_us;
    time.speedup_low = of_parts.speedup_low;
    time.speedup_high = of_parts.speedup_high;
    return time;
  }
  [[nodiscard]] const std::string& phase() const noexcept { return time_.phase; }

 private:
  PhaseTime time_;
  std::vector<ModelPart> parts_;
};

CalledTogether& entry_of(std::vector<CalledTogether>& phases, const std::string& device, const std::string& phase) {
  const auto found = std::ranges::find(phases, phase, &CalledTogether::phase);
  return found != phases.end() ? *found : phases.emplace_back(device, phase);
}

std::int64_t began_unix_ms(const DevicePlan& plan, SweepRecorder& recorder) {
  const std::vector<SessionRow> sessions = recorder.persist([](Store& store) { return store.sessions(); });
  const auto found = std::ranges::find_if(sessions, [&](const SessionRow& session) {
    return session.run_uuid == recorder.summary().run && same_identity(session.device, device_row(plan.info()));
  });
  return found == sessions.end() ? 0 : found->started_unix_ms;
}

}  // namespace

PlanTimes plan_times(const DevicePlan& plan, SweepRecorder& recorder, double end_s) {
  PlanTimes times;
  std::vector<CalledTogether> phases;
  CalledTogether whole(plan.info().name, "all");
  std::vector<ProblemHistory> histories;
  ModelResult model;
  const std::vector<double> estimated_us = plan.agenda().estimated_defaults_us();
  model.estimated.factor = plan.agenda().factor_of_estimates();
  const std::vector<PastDecision> decisions =
      recorder.persist([&](Store& store) { return store.decisions(device_row(plan.info())); });
  const std::int64_t began = began_unix_ms(plan, recorder);
  for (const auto& task : plan.tasks()) {
    const SweepProblem& wanted = task->search.wanted();
    const auto decision = best_decision(*task, recorder);
    times.decided += decision && !wanted.between ? 1 : 0;
    if (wanted.phases.empty()) {
      continue;
    }
    ModelPart part;
    ProblemHistory& history = histories.emplace_back();
    if (decision && decision->baseline) {
      part = {0, *decision->baseline, decision->time, decision->confidence};
      history.decisions = history_of(decisions, {task->tunable.own_space->kernel, task->tunable.source.hash},
                                     wanted.problem.text(), plan.toolkits(), began);
    } else if (const auto measured = measured_default(*task, recorder)) {
      part.with_default = *measured;
    } else {
      const std::string problem = wanted.problem.text();
      model.estimated.us[problem] = estimated_us[task->index];
      part.with_default = *model.estimated.of(problem);
    }
    for (const PhaseCalls& phase : wanted.phases) {
      entry_of(phases, plan.info().name, phase.phase).add(phase.count, part);
    }
    whole.add(model_calls(wanted), part);
    history.default_us = model_calls(wanted) * part.with_default.median_us;
  }
  std::ranges::transform(phases, std::back_inserter(times.phases), &CalledTogether::sum);
  std::stable_sort(times.phases.begin(), times.phases.end(), [](const PhaseTime& a, const PhaseTime& b) {
    return rank_of_phase(a.phase) < rank_of_phase(b.phase);
  });
  if (!phases.empty()) {
    model.total = whole.sum();
    model.curve = model_curve(histories, end_s);
    times.model = std::move(model);
  }
  return times;
}

std::optional<Forecast> forecast_of(const DevicePlan& plan, double devices, double left_s) {
  const std::vector<FirstLook> looks = plan.agenda().first_looks(left_s);
  const std::vector<double> defaults_us = plan.agenda().estimated_defaults_us();
  SeenBefore seen;
  for (const auto& task : plan.tasks()) {
    const bool is_seen = !task->unreached() && !task->search.wanted().between;
    seen.problems += is_seen ? 1 : 0;
    seen.model_us += is_seen ? model_calls(task->search.wanted()) * defaults_us[task->index] : 0;
  }
  auto result = forecast(looks, seen, {left_s, devices});
  if (result) {
    result->device = plan.info().name;
  }
  return result;
}

}  // namespace pascaline
