#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/paths.hpp"
#include "core/workload.hpp"
#include "db/decision_history.hpp"
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
  EstimatedDefaults estimated;           // of a call with a default that the sweep did not measure
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

// Calls added up by problem, of which each is measured once.
class CalledProblems {
 public:
  void add(const std::string& problem, const ModelPart& part, bool decided) {
    const auto [known, is_new] = parts_.try_emplace(problem, part);
    known->second.calls += is_new ? 0 : part.calls;
    decided_ += is_new && decided ? 1 : 0;
  }
  void add(const CalledProblems& other) {
    for (const auto& [problem, part] : other.parts_) {
      add(problem, part, part.with_winner.has_value());
    }
  }
  void write_to(ReportModelTimes& out) const {
    constexpr double kTie = 0.5;
    std::vector<ModelPart> parts;
    double decided_us = 0;
    double least = 1;
    bool changed = false;
    for (const auto& [problem, part] : parts_) {
      parts.push_back(part);
      decided_us += part.with_winner ? part.calls * part.with_default.median_us : 0;
      if (part.with_winner && part.confidence > kTie) {
        changed = true;
        least = std::min(least, part.confidence);
      }
    }
    const ModelTime time = model_time(parts);
    out.baseline_us = time.default_us;
    out.best_us = time.best_us;
    out.tuned = decided_;
    out.problems = parts_.size();
    out.confidence = changed ? least : kTie;
    const bool known = std::isfinite(time.speedup()) && time.best_us > 0;
    out.speedup =
        known ? std::optional(ReportSpeedup{time.speedup(), time.speedup_low, time.speedup_high}) : std::nullopt;
    out.decided_share = time.default_us > 0 ? std::optional(decided_us / time.default_us) : std::nullopt;
  }

 private:
  std::map<std::string, ModelPart> parts_;
  std::size_t decided_ = 0;
};

using ProblemsByText = std::map<std::string, const ReportProblem*>;

// The problem's times, of one call; without a time of its default that is 0, which is in no sum.
ModelPart part_of(const ProblemsByText& problems, const ModelCalls& model, const std::string& problem) {
  const auto found = problems.find(problem);
  const ReportProblem* const measured = found != problems.end() ? found->second : nullptr;
  if (measured != nullptr && measured->decided && measured->speedup) {
    return {0, *measured->baseline, measured->best, measured->confidence.value_or(1)};
  }
  if (measured != nullptr && measured->baseline) {
    return {0, *measured->baseline};
  }
  return {0, model.estimated.of(problem).value_or(TimeSummary())};
}

ReportPhase tuned_phase(const SizedPhase& from, const ProblemsByText& problems, const ModelCalls& model,
                        CalledProblems& called) {
  ReportPhase phase;
  phase.phase = from.phase;
  phase.per = from.per;
  phase.symbols = from.symbols;
  phase.types = from.types;
  for (const Calls& calls : from.calls) {
    ModelPart part = part_of(problems, model, calls.problem);
    part.calls = calls.count;
    const double default_us = part.with_default.median_us;
    const bool decided = part.with_winner.has_value();
    called.add(calls.problem, part, decided);
    if (!decided && phase.untuned.size() < kMaxUntuned) {
      phase.untuned.push_back(
          {calls.kernel, calls.problem, calls.count, default_us > 0 ? std::optional(default_us) : std::nullopt});
    } else if (!decided) {
      ++phase.untuned_more;
    }
  }
  called.write_to(phase);
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

// Phases of which nothing is tuned are not listed; they are part of the whole model where another phase is.
ReportWorkload workload_of(const ModelCalls& model, const ReportContext& context) {
  const ProblemsByText problems = current_problems(context);
  ReportWorkload out{model.name, {}, {}, {}};
  for (auto first = model.phases.begin(); first != model.phases.end();) {
    const auto last =
        std::find_if(first, model.phases.end(), [&](const SizedPhase& phase) { return phase.types != first->types; });
    CalledProblems all;
    bool any_tuned = false;
    for (auto at = first; at != last; ++at) {
      CalledProblems called;
      ReportPhase tuned = tuned_phase(*at, problems, model, called);
      all.add(called);
      any_tuned = any_tuned || tuned.tuned > 0;
      if (tuned.tuned > 0 && out.phases.size() < kMaxPhases) {
        out.phases.push_back(std::move(tuned));
      }
    }
    if (any_tuned) {
      ReportModelTimes& total = out.totals.emplace_back();
      total.types = first->types;
      all.write_to(total);
    }
    first = last;
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
ModelCalls calls_of_plan(const SweptModel& swept, const ReportOptions& options) {
  const SweepPlan& plan = swept.plan;
  ModelCalls model;
  model.estimated = swept.estimated;
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
  return {workload.name, phase_calls(workload, spaces), total_calls(workload, spaces), {}};
}

// The sweep's results of the context's toolkit, as they came.
std::vector<ModelPoint> curve_of(const SweptModel& swept, const ModelCalls& model, const ReportContext& context) {
  const ProblemsByText problems = current_problems(context);
  std::map<std::string, std::string> sources;  // hashes by kernel
  for (const ReportKernel& kernel : context.kernels) {
    if (kernel.current) {
      sources[kernel.name] = kernel.source_hash;
    }
  }
  std::vector<ProblemHistory> histories;
  for (const auto& [problem, calls] : model.totals) {
    const ModelPart part = part_of(problems, model, problem);
    ProblemHistory& history = histories.emplace_back();
    history.default_us = calls * part.with_default.median_us;
    if (part.with_winner) {
      const std::string& kernel = problems.at(problem)->problem.kernel;
      history.decisions =
          history_of(swept.decisions, {kernel, sources[kernel]}, problem, {context.toolkit}, swept.began_unix_ms);
    }
  }
  return model_curve(histories, swept.spent_s);
}

// Sessions have them once they ended; a database holds what anybody may have written there.
EstimatedDefaults estimated_defaults(const std::string& progress) {
  const nlohmann::json json = nlohmann::json::parse(progress, nullptr, false);
  const nlohmann::json::json_pointer place("/device/estimated");
  return json.is_object() && json.contains(place) ? json[place].get<EstimatedDefaults>() : EstimatedDefaults();
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
      SweptModel swept{session.device,
                       std::move(*plan),
                       estimated_defaults(session.progress),
                       store.decisions(session.device),
                       session.started_unix_ms,
                       static_cast<double>(session.spent_ms) / 1000};
      plans.push_back(std::move(swept));
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
      model = calls_of_plan(*plan, options);
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
    if (plan != plans.end()) {
      context.workload->curve = curve_of(*plan, *model, context);
    }
  }
}

}  // namespace pascaline
