#include "report/gather_trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "report/summary.hpp"

namespace pascaline {
namespace {

// The pass over the trials, with where each of them belongs.
class TrialPass {
 public:
  TrialPass(const Store& store, const ReportOptions& options) : store_(store), options_(options) {
    for (Winner& winner : store.winners(options.kernel, nullptr)) {
      winners_.emplace(winner.trial_id, std::move(winner));
    }
  }

  void add(const TrialBrief& brief) {
    if (!is_wanted(options_, brief.session)) {
      return;
    }
    const std::size_t context = context_of(brief);
    if (!out_.contexts[context].wanted) {
      return;
    }
    GatheredProblem& problem = problem_of(brief, context);
    const auto spent_ms = std::llround(std::clamp(brief.verify_ms + brief.measure_ms, 0.0, 1e15));
    const std::int64_t ended = brief.started_unix_ms + spent_ms;
    problem.trials.push_back({brief.id, brief.session, brief.time ? brief.time->median_us : 0, brief.started_unix_ms,
                              ended, brief.status, brief.stage, brief.is_default});
    add_config(problem, brief);
    problem.ids.space = brief.context.space;
    note_time(problem, brief);
    note_winner(problem, brief.id);
    note_context(out_.contexts[context], problem, brief);
    out_.moments.push_back({brief.id, brief.session, brief.started_unix_ms, ended});
    out_.context_of_session.try_emplace(brief.session, context);
    add(out_.counts_of_session[brief.session], brief);
    add(problem.counts, brief);
  }

  GatheredTrials finish() {
    for (GatheredProblem& problem : out_.problems) {
      if (problem.ids.space != first_space_[problem_key(problem.ids)]) {
        problem.rows = store_.rows_of(problem.ids);
      }
    }
    return std::move(out_);
  }

 private:
  static void add(TrialCounts& counts, const TrialBrief& brief) {
    counts.add(brief.stage, brief.status, brief.is_duplicate);
  }

  using ProblemKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  static ProblemKey problem_key(const ContextIds& ids) { return {ids.device, ids.toolkit, ids.kernel, ids.problem}; }

  void add_config(GatheredProblem& problem, const TrialBrief& brief) const {
    try {
      problem.configs.add(brief.config_json);
    } catch (const Error& fault) {
      throw StoreError(fmt::format("{}: cannot read the trials: row {} of table trials, column config: {}",
                                   store_.file().string(), brief.id, fault.what()));
    }
  }

  std::size_t context_of(const TrialBrief& brief) {
    const auto [known, fresh] =
        contexts_.try_emplace({brief.context.device, brief.context.toolkit}, out_.contexts.size());
    if (fresh) {
      const ContextRows rows = store_.rows_of(brief.context);
      GatheredContext& context = out_.contexts.emplace_back();
      context.device = rows.device;
      context.toolkit = rows.toolkit;
      context.wanted = is_wanted(options_, rows.device);
    }
    return known->second;
  }

  GatheredProblem& problem_of(const TrialBrief& brief, std::size_t context) {
    const auto [known, fresh] = problems_.try_emplace(problem_key(brief.context), out_.problems.size());
    if (fresh) {
      GatheredProblem& problem = out_.problems.emplace_back();
      problem.ids = brief.context;
      problem.rows = store_.rows_of(brief.context);
      problem.context = context;
      first_space_[known->first] = brief.context.space;
    }
    return out_.problems[known->second];
  }

  // As in the other reports: until finals decide, the fastest trial stands for the winner and the latest default for
  // its baseline.
  static void note_time(GatheredProblem& problem, const TrialBrief& brief) {
    if (!brief.time) {
      return;
    }
    if (brief.is_default) {
      problem.baseline = brief.time;
    }
    if (!problem.fastest || brief.time->median_us < problem.fastest->median_us) {
      problem.fastest = brief.time;
      problem.fastest_trial = problem.trials.size() - 1;
    }
  }

  void note_winner(GatheredProblem& problem, std::int64_t trial_id) {
    const auto found = winners_.find(trial_id);
    if (found != winners_.end()) {
      problem.winner = std::move(found->second);
      problem.winner_trial = problem.trials.size() - 1;
    }
  }

  static void note_context(GatheredContext& context, const GatheredProblem& problem, const TrialBrief& brief) {
    add(context.counts, brief);
    context.statuses[static_cast<std::size_t>(brief.status)] += brief.stage == TrialStage::search ? 1 : 0;
    if (brief.started_unix_ms > 0) {  // another tuner may not tell when
      const bool first = context.first_unix_ms == 0;
      context.first_unix_ms = first ? brief.started_unix_ms : std::min(context.first_unix_ms, brief.started_unix_ms);
    }
    context.last_unix_ms = std::max(context.last_unix_ms, brief.started_unix_ms);
    const std::string& kernel = problem.rows.kernel.name;
    context.latest[kernel] = {brief.id, brief.context.kernel};
    if (has_time(brief.status)) {
      return;
    }
    GatheredFailure& failure = context.failures[{brief.status, failure_text(brief.stage, brief.reason)}];
    if (failure.count++ == 0) {
      failure.problem = problem.rows.problem.text();
      failure.config = Config::from_json(nlohmann::json::parse(brief.config_json)).text();
    }
    if (std::find(failure.kernels.begin(), failure.kernels.end(), kernel) == failure.kernels.end()) {
      failure.kernels.push_back(kernel);
    }
  }

  const Store& store_;
  const ReportOptions& options_;
  GatheredTrials out_;
  std::unordered_map<std::int64_t, Winner> winners_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> contexts_;
  std::map<ProblemKey, std::size_t> problems_;
  std::map<ProblemKey, std::int64_t> first_space_;
};

// Contexts of devices that are not asked for were only kept to be known.
void drop_unwanted(GatheredTrials& gathered) {
  std::vector<std::size_t> places(gathered.contexts.size());
  std::vector<GatheredContext> wanted;
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = wanted.size();
    if (gathered.contexts[i].wanted) {
      wanted.push_back(std::move(gathered.contexts[i]));
    }
  }
  gathered.contexts = std::move(wanted);
  for (GatheredProblem& problem : gathered.problems) {
    problem.context = places[problem.context];
  }
  for (auto& [session, context] : gathered.context_of_session) {
    context = places[context];
  }
}

}  // namespace

GatheredTrials gather_trials(const Store& store, const ReportOptions& options) {
  TrialPass pass(store, options);
  store.for_each_brief(options.kernel, [&](const TrialBrief& brief) { pass.add(brief); });
  GatheredTrials gathered = pass.finish();
  drop_unwanted(gathered);
  for (GatheredProblem& problem : gathered.problems) {
    if (problem.winner && problem.winner->baseline) {
      problem.stand_in = store.stand_in_of(problem.winner->trial_id);
    }
  }
  return gathered;
}

}  // namespace pascaline
