#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/paths.hpp"
#include "core/workload.hpp"
#include "db/store.hpp"
#include "db/sweep_plan.hpp"
#include "report/gather.hpp"
#include "report/gather_parts.hpp"
#include "report/summary.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kMaxPhases = 40;
constexpr std::size_t kMaxUntuned = 50;

using WorkloadTypes = std::vector<std::pair<std::string, ElementType>>;

// A problem's calls in a phase.
struct Calls {
  std::string kernel;
  std::string problem;
  double count = 0;
};

// A phase at one value of its symbols and one choice of element types.
struct SizedPhase {
  std::string phase;
  std::string per;
  std::vector<std::pair<std::string, std::int64_t>> symbols;
  WorkloadTypes types;
  std::vector<Calls> calls;
};

std::filesystem::path spaces_folder_of(const ReportOptions& options) {
  return options.spaces_folder.empty() ? data_folder("search_spaces") : options.spaces_folder;
}

// Of a model's calls, what a report needs.
struct ModelCalls {
  std::string name;
  std::vector<SizedPhase> phases;
  std::map<std::string, double> totals;  // of each problem, over all phases
};

std::vector<Space> spaces_of(const Workload& workload, const ReportOptions& options) {
  std::set<std::string> kernels;
  for (const WorkloadEntry& entry : workload.entries) {
    if (options.kernel.empty() || options.kernel == entry.kernel) {
      kernels.insert(entry.kernel);
    }
  }
  std::vector<Space> spaces;
  for (const std::string& kernel : kernels) {
    const std::filesystem::path file = kernel_file(spaces_folder_of(options), kernel, ".json");
    if (std::filesystem::exists(file)) {
      spaces.push_back(Space::load(file));
    }
  }
  return spaces;
}

std::vector<WorkloadTypes> type_choices(const Workload& workload) {
  std::vector<WorkloadTypes> choices(1);
  for (const auto& [name, types] : workload.types) {
    std::vector<WorkloadTypes> longer;
    for (const WorkloadTypes& before : choices) {
      for (const ElementType type : types) {
        longer.push_back(before);
        longer.back().emplace_back(name, type);
      }
    }
    choices = std::move(longer);
  }
  return choices;
}

// The kernel's problems where only those types are chosen. Where it is there for one type only, it has that; one that
// is there for several but not for this is not part of the choice.
std::vector<WorkloadProblem> expand_for(const Workload& workload, const WorkloadTypes& types, const Space& space) {
  Workload narrowed = workload;
  narrowed.types.clear();
  for (const auto& [name, type] : types) {
    const auto variable = std::find_if(space.types.begin(), space.types.end(),
                                       [&key = name](const TypeVariable& known) { return known.name == key; });
    const bool one = variable != space.types.end() && variable->allowed.size() == 1;
    narrowed.types.emplace_back(name, std::vector<ElementType>{one ? variable->allowed.front() : type});
  }
  try {
    return expand(narrowed, space);
  } catch (const SpaceError&) {
    Workload own = narrowed;  // of what has types of its own, whatever is chosen
    own.types.clear();
    own.entries.erase(std::remove_if(own.entries.begin(), own.entries.end(),
                                     [](const WorkloadEntry& entry) { return entry.types.empty(); }),
                      own.entries.end());
    return expand(own, space);
  }
}

const std::string& unit_of(const Workload& workload, const std::string& phase) {
  return std::find_if(workload.phases.begin(), workload.phases.end(),
                      [&](const WorkloadPhase& known) { return known.name == phase; })
      ->per;
}

// Phases in the workload's order, each at all values of its symbols.
std::vector<SizedPhase> phase_calls(const Workload& workload, const std::vector<Space>& spaces) {
  std::vector<SizedPhase> phases;
  for (const WorkloadTypes& types : type_choices(workload)) {
    const std::size_t first = phases.size();
    for (const Space& space : spaces) {
      for (const WorkloadProblem& one : expand_for(workload, types, space)) {
        auto at = std::find_if(phases.begin() + static_cast<std::ptrdiff_t>(first), phases.end(),
                               [&](const SizedPhase& p) { return p.phase == one.phase && p.symbols == one.symbols; });
        if (at == phases.end()) {
          phases.push_back({one.phase, unit_of(workload, one.phase), one.symbols, types, {}});
          at = phases.end() - 1;
        }
        at->calls.push_back({space.kernel, one.problem.text(), one.count});
      }
    }
  }
  return phases;
}

// Times of calls, added up.
struct TimeSums {
  TimeSummary baseline;
  TimeSummary best;
  double confidence = 1;  // of what something else than the default won
  bool known = true;
  bool changed = false;
  std::set<std::string> called;
  std::set<std::string> tuned;  // of `called`

  static void add_scaled(TimeSummary& sum, const TimeSummary& time, double count) {
    sum.median_us += count * time.median_us;
    sum.low_us += count * time.low_us;
    sum.high_us += count * time.high_us;
  }
  // `problem`: nullptr if it is not tuned.
  void add(const Calls& calls, const ReportProblem* problem) {
    called.insert(calls.problem);
    if (problem == nullptr) {
      return;
    }
    tuned.insert(calls.problem);
    add_scaled(baseline, *problem->baseline, calls.count);
    add_scaled(best, *problem->best, calls.count);
    known = known && problem->confidence.has_value();
    if (!problem->best_is_default) {
      changed = true;
      confidence = std::min(confidence, problem->confidence.value_or(1));
    }
  }
  void add(const TimeSums& other) {
    add_scaled(baseline, other.baseline, 1);
    add_scaled(best, other.best, 1);
    known = known && other.known;
    changed = changed || other.changed;
    confidence = std::min(confidence, other.confidence);
    called.insert(other.called.begin(), other.called.end());
    tuned.insert(other.tuned.begin(), other.tuned.end());
  }
  void write_to(ReportModelTimes& out) const {
    constexpr double kTie = 0.5;
    out.baseline_us = baseline.median_us;
    out.best_us = best.median_us;
    out.tuned = tuned.size();
    out.problems = called.size();
    out.confidence = known ? std::optional(changed ? confidence : kTie) : std::nullopt;
    out.speedup = speedup_between(baseline, best);
  }
};

using ProblemsByText = std::map<std::string, const ReportProblem*>;

// nullptr if it has no speedup.
const ReportProblem* find_tuned(const ProblemsByText& problems, const std::string& problem) {
  const auto found = problems.find(problem);
  return found != problems.end() && found->second->speedup ? found->second : nullptr;
}

ReportPhase tuned_phase(const SizedPhase& from, const ProblemsByText& problems, TimeSums& sums) {
  ReportPhase phase;
  phase.phase = from.phase;
  phase.per = from.per;
  phase.symbols = from.symbols;
  phase.types = from.types;
  for (const Calls& calls : from.calls) {
    const ReportProblem* tuned = find_tuned(problems, calls.problem);
    sums.add(calls, tuned);
    if (tuned == nullptr && phase.untuned.size() < kMaxUntuned) {
      phase.untuned.push_back({calls.kernel, calls.problem, calls.count});
    } else if (tuned == nullptr) {
      ++phase.untuned_more;
    }
  }
  sums.write_to(phase);
  return phase;
}

// Of the present version of each kernel.
ProblemsByText current_problems(const ReportContext& context) {
  ProblemsByText problems;
  for (const ReportKernel& kernel : context.kernels) {
    for (const ReportProblem& problem : kernel.problems) {
      if (kernel.current) {
        problems[problem.problem.text()] = &problem;
      }
    }
  }
  return problems;
}

ReportWorkload workload_of(const ModelCalls& model, const ReportContext& context) {
  const ProblemsByText problems = current_problems(context);
  ReportWorkload out{model.name, {}, {}};
  std::vector<TimeSums> totals;
  for (const SizedPhase& phase : model.phases) {
    TimeSums sums;
    ReportPhase tuned = tuned_phase(phase, problems, sums);
    if (tuned.tuned == 0 || out.phases.size() == kMaxPhases) {
      continue;
    }
    if (out.phases.empty() || out.phases.back().types != tuned.types) {
      totals.emplace_back();
      out.totals.emplace_back().types = tuned.types;
    }
    totals.back().add(sums);
    out.phases.push_back(std::move(tuned));
  }
  for (std::size_t i = 0; i < totals.size(); ++i) {
    totals[i].write_to(out.totals[i]);
  }
  return out;
}

// A problem that does not depend on the chosen types is in the phases of every choice, and is called once.
std::map<std::string, double> total_calls(const Workload& workload, const std::vector<Space>& spaces) {
  std::map<std::string, double> calls;
  for (const Space& space : spaces) {
    for (const WorkloadProblem& problem : expand(workload, space)) {
      calls[problem.problem.text()] += problem.count;
    }
  }
  return calls;
}

// A sweep of a model or workload knows how often each of its problems is called.
ModelCalls calls_of_plan(const SweepPlan& plan, const ReportOptions& options) {
  ModelCalls model;
  model.name = "the latest sweep of a model or workload";
  for (const PlannedProblem& planned : plan.problems) {
    if (!options.kernel.empty() && options.kernel != planned.problem.kernel) {
      continue;
    }
    const std::string problem = planned.problem.text();
    for (const PhaseCalls& calls : planned.phases) {
      if (!std::isfinite(calls.count)) {
        continue;  // a database holds what anybody may have written there
      }
      auto at = std::find_if(model.phases.begin(), model.phases.end(),
                             [&](const SizedPhase& known) { return known.phase == calls.phase; });
      if (at == model.phases.end()) {
        at = model.phases.insert(at, SizedPhase{calls.phase, "", {}, {}, {}});
      }
      at->calls.push_back({planned.problem.kernel, problem, calls.count});
      model.totals[problem] += calls.count;
    }
  }
  std::stable_sort(model.phases.begin(), model.phases.end(), [](const SizedPhase& a, const SizedPhase& b) {
    return rank_of_phase(a.phase) < rank_of_phase(b.phase);
  });
  return model;
}

ModelCalls calls_of_workload(const ReportOptions& options) {
  const Workload workload = Workload::load(options.workload);
  const std::vector<Space> spaces = spaces_of(workload, options);
  return {workload.name, phase_calls(workload, spaces), total_calls(workload, spaces)};
}

bool is_of_model(const SweepPlan& plan) {
  return std::any_of(plan.problems.begin(), plan.problems.end(),
                     [](const PlannedProblem& problem) { return !problem.phases.empty(); });
}

}  // namespace

std::vector<SweptModel> model_plans(const Store& store, const ReportOptions& options) {
  std::vector<SweptModel> plans;
  if (!options.workload.empty()) {
    return plans;
  }
  for (const SessionRow& session : store.sessions()) {  // the newest first
    const bool known = std::any_of(plans.begin(), plans.end(),
                                   [&](const SweptModel& plan) { return same_identity(plan.device, session.device); });
    if (known || session.run_uuid.empty() || !is_wanted(options, session.device) || !is_wanted(options, session.id)) {
      continue;
    }
    if (std::optional<SweepPlan> plan = store.plan(session.run_uuid); plan && is_of_model(*plan)) {
      plans.push_back({session.device, std::move(*plan)});
    }
  }
  return plans;
}

void add_workload(ReportDocument& document, const ReportOptions& options, const std::vector<SweptModel>& plans) {
  if (options.workload == kNoWorkload) {
    return;
  }
  const std::optional<ModelCalls> asked_for =
      options.workload.empty() ? std::nullopt : std::optional(calls_of_workload(options));
  for (ReportContext& context : document.contexts) {
    std::optional<ModelCalls> model = asked_for;
    const auto plan = std::find_if(plans.begin(), plans.end(), [&](const SweptModel& known) {
      return same_identity(known.device, context.device);
    });
    if (plan != plans.end()) {
      model = calls_of_plan(plan->plan, options);
    }
    if (!model) {
      continue;
    }
    for (ReportKernel& kernel : context.kernels) {
      for (ReportProblem& problem : kernel.problems) {
        const auto found = model->totals.find(problem.problem.text());
        if (found != model->totals.end()) {
          problem.count = found->second;
        }
      }
    }
    context.workload = workload_of(*model, context);
  }
}

}  // namespace pascaline
