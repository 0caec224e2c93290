#include "tuner/sweep/objective_decider.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tuner/finals/objective.hpp"

namespace pascaline {

bool ObjectiveDecider::lacks(const SweepTask& task) const {
  return !objective_of(options_.finals).by_time_alone() &&
         std::ranges::none_of(task.rows.contexts, [this](const ContextIds& context) {
           return recorder_.persist(
               [&](Store& store) { return store.decision(context, options_.finals.objective.objective).has_value(); });
         });
}

// Why nothing was decided, if so; a winner that is stored stays, and what is told once is not told again.
bool ObjectiveDecider::tell_undecided(SweepTask& task, const ObjectiveDecision& decision, const FinalsLimits& limits) {
  const std::string what = fmt::format("{}: {}: no winner by {}", device_, task.search.wanted().problem.text(),
                                       phrase_of(decision.objective));
  const bool told = !task.look.no_time_by_objective.empty();
  const bool undecided = this->lacks(task);
  task.look.finals_put_off = decision.out_of_time && limits.shared && undecided;
  task.look.no_time_by_objective =
      decision.out_of_time && undecided ? fmt::format("no winner by {}", phrase_of(decision.objective)) : std::string();
  const bool wanted = decision.out_of_time ? undecided && !told : !decision.undecided.empty();
  if (wanted && task.look.finals_put_off) {  // time may be left after all first looks
    recorder_.note(fmt::format(
        "{} yet: its share of the time is used up; it is decided after the first look at all shapes, if time is left",
        what));
  } else if (wanted) {
    recorder_.note(fmt::format("{}: {}", what, decision.undecided));
  }
  return decision.out_of_time || !decision.undecided.empty();
}

// A winner by the objective that there was no time to compare again stays.
bool ObjectiveDecider::was_not_compared(const Store& store, const SweepTask& task, const ContextIds& context,
                                        const FinalsResult& result, const FinalsLimits& limits) const {
  const ObjectiveDecision& decision = *result.by_objective;
  const auto stored = store.decision(context, decision.objective);
  if (!stored) {
    return false;
  }
  double fastest_us = std::numeric_limits<double>::infinity();
  for (const Trial& trial : result.trials) {
    fastest_us = std::min(fastest_us, trial.time->median_us);
  }
  for (std::size_t i = 0; i < result.trials.size(); ++i) {
    const Trial& trial = result.trials[i];
    const TaskRows::Stored of_trial = task.rows.stored(trial.config);
    if (of_trial.config == stored->config && of_trial.context.toolkit == context.toolkit) {
      return trial.time->median_us <= options_.finals.objective.contender_factor * fastest_us &&
             std::ranges::none_of(decision.contenders,
                                  [&](const Contender& contender) { return contender.trial == i; });
    }
  }
  return limits.cut;
}

// What another sweep decides is not overwritten between the look and the storing.
void ObjectiveDecider::store(const SweepTask& task, const ObjectiveDecision& decided, const FinalsResult& result,
                             std::optional<std::size_t> baseline, const std::vector<std::int64_t>& ids,
                             const FinalsLimits& limits) {
  const ContextIds context = task.rows.stored(result.trials[decided.winner].config).context;
  bool stays = false;
  recorder_.persist([&](Store& store) {
    store.in_one_transaction([&] {
      stays = was_not_compared(store, task, context, result, limits);
      if (!stays) {
        store.set_winner(context, ids[decided.winner],
                         baseline ? result.trials[*baseline].time : std::optional<TimeSummary>{}, decided.confidence,
                         decided.objective, decided.baseline_score);
      }
    });
  });
  if (stays) {
    recorder_.note(fmt::format("{}: {}: its winner by {} stays: there was no time to compare it again", device_,
                               task.search.wanted().problem.text(), phrase_of(decided.objective)));
  }
}

void ObjectiveDecider::announce(SweepTask& task, const FinalsResult& result, const std::vector<std::int64_t>& ids,
                                const FinalsLimits& limits) {
  const ObjectiveDecision& decision = *result.by_objective;
  if (tell_undecided(task, decision, limits)) {
    return;
  }
  const CompilerAxis& compilers = *task.tunable.compilers;
  const Config standard = task.rows.own_bound.default_config();
  for (std::size_t compiler = 0; compiler < compilers.count(); ++compiler) {
    if (compiler == compilers.index_of(result.trials[decision.winner].config)) {
      continue;
    }
    ObjectiveDecision among{decision.objective};
    std::optional<std::size_t> baseline;
    for (const Contender& contender : decision.contenders) {
      const Config& config = result.trials[contender.trial].config;
      if (compilers.index_of(config) == compiler) {
        baseline = config == compilers.with(standard, compiler) ? std::optional(contender.trial) : baseline;
        among.contenders.push_back(contender);
      }
    }
    if (baseline) {
      decide_objective(among, result.trials, baseline, options_.finals);
      store(task, among, result, baseline, ids, limits);
    }
  }
  store(task, decision, result, result.baseline_trial, ids, limits);
}

}  // namespace pascaline
