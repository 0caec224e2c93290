#include "tuner/sweep/report_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/device/emulator_name.hpp"
#include "core/util/counted.hpp"
#include "core/util/duration.hpp"
#include "tuner/finals/objective.hpp"
#include "tuner/sweep/budget.hpp"
#include "tuner/sweep/phase_times.hpp"

namespace pascaline {
namespace {

// Estimates seconds from earlier sweeps, with devices working in parallel; nothing if a kernel cannot be estimated.
std::optional<double> expected_seconds(const SweepState& sweep) {
  double seconds = 0;
  for (const auto& plan : sweep.plans) {
    double plan_s = 0;
    double windows_s = 0;
    for (const auto& tunable : plan->tunables()) {
      PlannedWork work;
      for (const auto& task : plan->tasks()) {
        const bool counts = &task->tunable == tunable.get() && !task->over();
        work.trials += counts ? task->search.remaining() : 0;
        work.problems += counts ? 1 : 0;
      }
      if (work.problems == 0) {
        continue;
      }
      const TrialCost cost = sweep.store.trial_costs(plan->context().device, tunable->space->kernel,
                                                     sweep.options.finals.objective.objective);
      auto kernel_s = estimate_s(work, cost);
      kernel_s = kernel_s ? kernel_s : tunable->guessed_s(work);
      if (!kernel_s) {
        return std::nullopt;
      }
      plan_s += *kernel_s;
      const bool has_windows = !cost.with_objective;
      windows_s += has_windows ? work.problems * objective_windows_s(sweep.options.finals) : 0;
    }
    plan_s += windows_s;
    seconds = std::max(seconds, plan_s / std::max(1.0, sweep.devices_of(*plan)));
  }
  return seconds;
}

// Warns if the time does not suffice for a first look at every problem.
void report_forecast(SweepState& sweep) {
  const auto left_s = sweep.time.deadline.left_s();
  if (!left_s) {
    return;
  }
  for (const auto& plan : sweep.plans) {
    if (auto short_of = forecast_of(*plan, sweep.devices_of(*plan), *left_s)) {
      sweep.recorder.note((sweep.plans.size() > 1 ? short_of->device + ": " : "") + forecast_text(*short_of));
      sweep.summary.forecast.too_short.push_back(std::move(*short_of));
    }
  }
}

// The time that the searches take, for display.
std::string time_text(const std::optional<double>& expected_s, const std::optional<double>& left_s, bool limited) {
  std::string time = expected_s ? "about " + duration_text(*expected_s)
                                : "duration unknown: no earlier sweep on this machine to estimate from";
  if (left_s) {
    return limited && expected_s != left_s ? time + fmt::format(", at most {}", duration_text(*left_s))
                                           : duration_text(*left_s);
  }
  return time;
}

// The devices of a plan, and what they begin with.
void report_devices(const SweepState& sweep, const DevicePlan& plan) {
  for (const std::string& line : plan.compilers_left_out()) {
    sweep.recorder.note(line);
  }
  for (const std::string& line : plan.transfer().taken_over_lines(plan.problems())) {
    sweep.recorder.note(line);
  }
  std::vector<std::string> compilers;
  for (const CompilerInfo& compiler : plan.compilers().compilers()) {
    compilers.push_back(compiler.text());
  }
  std::vector<std::string> ids;
  for (const ScheduledDevice& scheduled : sweep.devices) {
    if (scheduled.plan == &plan) {
      ids.push_back(scheduled.scheduler->device());
    }
  }
  sweep.recorder.note(fmt::format("{} ({}), {} for {}, {}", plan.info().name, fmt::join(ids, ", "),
                                  fmt::join(compilers, " and "), shown_architecture(plan.target().architecture),
                                  counted(plan.builds().builder().workers(), "compile worker")));
}

}  // namespace

void report_plan(SweepState& sweep) {
  for (const auto& plan : sweep.plans) {
    report_devices(sweep, *plan);
  }
  const bool limited = sweep.options.trials < kUnlimitedTrials;
  const auto left_s = sweep.time.deadline.left_s();
  sweep.summary.forecast.expected_s = limited ? expected_seconds(sweep) : left_s;
  if (sweep.summary.forecast.expected_s && left_s) {
    sweep.summary.forecast.expected_s = std::min(*sweep.summary.forecast.expected_s, *left_s);
  }
  const auto& tasks = sweep.plans.front()->tasks();
  const auto between = static_cast<std::size_t>(
      std::ranges::count_if(tasks, [](const auto& task) { return task->search.wanted().between; }));
  const std::size_t problems = tasks.size() - between;
  const std::string trials = limited ? fmt::format("up to {} each", counted(sweep.options.trials, "trial"))
                             : sweep.options.search.searcher == kNoSearcher
                                 ? std::string("defaults and portfolios only")
                                 : std::string("as many trials as fit");
  const std::size_t kernels = sweep.plans.front()->tunables().size();
  const FinalsObjective& by = objective_of(sweep.options.finals);
  const std::string objective = by.by_time_alone() ? "" : fmt::format(" by time and by {}", phrase_of(by.id()));
  const std::string time_left =
      !deepens(sweep.options) ? std::string()
      : between > 0           ? fmt::format("; with time left: finals again, neighbours of winners, {} in between",
                                            counted(between, "shape"))
                              : std::string("; with time left: finals again, neighbours of winners");
  sweep.recorder.note(fmt::format("plan: {}{}, {}, then finals{}; {}{}", counted(problems, "problem"),
                                  kernels > 1 ? fmt::format(" of {} kernels", kernels) : "", trials, objective,
                                  time_text(sweep.summary.forecast.expected_s, left_s, limited), time_left));
  report_forecast(sweep);
}

}  // namespace pascaline
