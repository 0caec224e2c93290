#include "report/gather.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "report/gather_parts.hpp"
#include "report/summary.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kMaxFailures = 200;
constexpr std::size_t kMaxPoints = 200;  // of time and energy, of a problem

// Where a problem goes: kernels by name and arithmetic, their present version first.
ReportKernel& kernel_of(ReportContext& context, const GatheredContext& gathered, const GatheredProblem& problem) {
  const KernelRow& row = problem.rows.kernel;
  const bool is_int8 = is_int8_work(problem);  // whose rates have another bound
  const auto known = std::find_if(context.kernels.begin(), context.kernels.end(), [&](const ReportKernel& kernel) {
    return kernel.name == row.name && kernel.source_hash == row.source_hash && kernel.is_int8 == is_int8;
  });
  if (known != context.kernels.end()) {
    return *known;
  }
  ReportKernel& added = context.kernels.emplace_back();
  added.name = row.name;
  added.source_hash = row.source_hash;
  added.is_int8 = is_int8;
  added.current = gathered.latest.at(row.name).second == problem.ids.kernel;
  return added;
}

bool problem_before(const ReportProblem& a, const ReportProblem& b) {
  return std::tie(a.problem.types, a.problem.dimensions) < std::tie(b.problem.types, b.problem.dimensions);
}

void sort_kernels(ReportContext& context) {
  std::stable_sort(context.kernels.begin(), context.kernels.end(), [](const ReportKernel& a, const ReportKernel& b) {
    return std::pair(a.name, !a.current) < std::pair(b.name, !b.current);
  });
  for (ReportKernel& kernel : context.kernels) {
    std::stable_sort(kernel.problems.begin(), kernel.problems.end(), problem_before);
  }
}

void set_failures(ReportContext& context, const GatheredContext& gathered) {
  for (const auto& [kind, failure] : gathered.failures) {
    context.failures.push_back(
        {kind.first, kind.second, failure.count, failure.kernels, failure.problem, failure.config});
  }
  std::stable_sort(context.failures.begin(), context.failures.end(),
                   [](const ReportFailure& a, const ReportFailure& b) { return a.count > b.count; });
  while (context.failures.size() > kMaxFailures) {
    context.failures_more += context.failures.back().count;
    context.failures.pop_back();
  }
}

ReportContext context_header(const GatheredContext& gathered, const MeasuredRates& measured) {
  ReportContext context;
  context.device = gathered.device;
  context.toolkit = gathered.toolkit;
  context.roofline = roofline_of(gathered.device, measured);
  context.measured = measured;
  context.first_unix_ms = gathered.first_unix_ms;
  context.last_unix_ms = gathered.last_unix_ms;
  context.statuses = gathered.statuses;
  context.counts = gathered.counts;
  set_failures(context, gathered);
  return context;
}

// The first of the configurations is the best, if there is one.
void set_best(ReportProblem& problem) {
  if (!problem.configurations.empty() && problem.configurations.front().best) {
    problem.best_config = problem.configurations.front().trial.config;
    problem.energy_mj = problem.configurations.front().trial.energy_mj;
  }
}

void add_problems(ReportDocument& document, const Store& store, const GatheredTrials& gathered,
                  const std::vector<SessionRow>& sessions, const ReportOptions& options) {
  const ReportDetail detail = detail_for(gathered.problems.size(), sessions.size());
  std::unordered_map<std::int64_t, const SessionRow*> session_of;
  for (const SessionRow& session : sessions) {
    session_of[session.id] = &session;
  }
  std::map<ParetoKey, ParetoProblem> pareto = pareto_problems(store, options.kernel, [&](const StoredTrial& stored) {
    return is_wanted(options, stored.device) && is_wanted(options, stored.session_id);
  });
  for (const GatheredProblem& problem : gathered.problems) {
    ReportContext& context = document.contexts[problem.context];
    ReportProblem out = problem_figures(problem, context.roofline, session_of, detail);
    const std::vector<std::size_t> order = parameter_order(problem);
    out.parameters = parameter_effects(problem, order);
    out.heat = heat_of(problem, out.parameters, order, detail.heat_parameters);
    out.configurations = shown_configurations(store, problem, order, detail);
    set_best(out);
    const GatheredContext& of = gathered.contexts[problem.context];
    const auto both = pareto.find(pareto_key(of.device, of.toolkit, problem.rows.kernel.source_hash, out.problem));
    if (both != pareto.end()) {
      out.pareto = std::move(both->second);
      thin_out_points(*out.pareto, kMaxPoints);
    }
    kernel_of(context, gathered.contexts[problem.context], problem).problems.push_back(std::move(out));
  }
}

void number_problems(ReportDocument& document) {
  std::size_t next = 0;
  for (ReportContext& context : document.contexts) {
    for (ReportKernel& kernel : context.kernels) {
      for (ReportProblem& problem : kernel.problems) {
        problem.id = next++;
      }
    }
  }
}

void gather_all(ReportDocument& document, const Store& store, const ReportOptions& options) {
  const std::vector<SessionRow> sessions = store.sessions();
  for (const auto& [session, counts] : counts_by_session(store)) {
    document.database_counts += counts;
  }
  document.database_sessions = sessions.size();
  const GatheredTrials gathered = gather_trials(store, options);
  std::transform(
      gathered.contexts.begin(), gathered.contexts.end(), std::back_inserter(document.contexts),
      [&](const GatheredContext& context) { return context_header(context, store.measured_rates(context.device)); });
  document.sessions = report_sessions(store, sessions, gathered, options);
  for (const ReportSession& session : document.sessions) {
    if (session.context) {
      document.contexts[*session.context].spent_ms += session.row.spent_ms;
    }
  }
  add_problems(document, store, gathered, sessions, options);
  for (ReportContext& context : document.contexts) {
    sort_kernels(context);
    context.speedups = summarize_speedups(context);
  }
  number_problems(document);
}

// What limits the problems of the kernels' present versions. It may take compilations, so the database is not held.
void add_limits(ReportDocument& document, const ReportOptions& options) {
  for (ReportContext& context : document.contexts) {
    for (ReportKernel& kernel : context.kernels) {
      for (ReportProblem& problem : kernel.problems) {
        if (kernel.current) {
          const LimitRequest request{context.device,  context.toolkit, kernel.source_hash, problem.problem, {},
                                     context.measured};
          problem.limits = limits_of(options.limit_of, request, problem.best_config, problem.baseline_config);
        }
      }
    }
  }
}

}  // namespace

ReportDocument gather_report(const Store& store, const ReportOptions& options) {
  using namespace std::chrono;
  ReportDocument document;
  document.title = options.title;
  document.generated_unix_ms = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
  document.database = store.file().filename().string();
  document.kernel_filter = options.kernel;
  document.device_filter = options.device;
  document.live = options.live;
  std::vector<SweptModel> plans;
  store.at_one_moment([&] {
    gather_all(document, store, options);
    plans = model_plans(store, options);
  });
  add_workload(document, options, plans);
  add_limits(document, options);
  return document;
}

}  // namespace pascaline
