#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "tuner/sweep/device_scheduler.hpp"

// What finals decide by another objective than time.
namespace pascaline {

bool DeviceScheduler::lacks_objective() const {
  return !by_time_alone() && std::ranges::none_of(task_->contexts, [this](const ContextIds& context) {
    return recorder_.persist(
        [&](Store& store) { return store.decision(context, options_.finals.objective.objective).has_value(); });
  });
}

// Why nothing was decided, if so; a winner that is stored stays, and what is told once is not told again.
bool DeviceScheduler::tell_undecided(const ObjectiveDecision& decision) {
  const std::string what = fmt::format("{}: {}: no winner by {}", status_.device(),
                                       task_->search.wanted().problem.text(), phrase_of(decision.objective));
  const bool told = !task_->no_time_by_objective.empty();
  const bool lacks = lacks_objective();
  task_->objective_put_off = decision.out_of_time && finals_.shared && lacks;
  task_->no_time_by_objective =
      decision.out_of_time && lacks ? fmt::format("no winner by {}", phrase_of(decision.objective)) : std::string();
  const bool wanted = decision.out_of_time ? lacks && !told : !decision.undecided.empty();
  if (wanted && task_->objective_put_off) {  // there may be time when all problems were looked at
    recorder_.note(fmt::format(
        "{} yet: its share of the time was over; it is decided when all shapes were looked at, if there is time",
        what));
  } else if (wanted) {
    recorder_.note(fmt::format("{}: {}", what, decision.undecided));
  }
  return decision.out_of_time || !decision.undecided.empty();
}

// A winner by the objective that there was no time to compare again stays.
bool DeviceScheduler::was_not_compared(const Store& store, const ContextIds& context,
                                       const FinalsResult& result) const {
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
    const SweepTask::Stored of_trial = task_->stored(trial.config);
    if (of_trial.config == stored->config && of_trial.context.toolkit == context.toolkit) {
      return trial.time->median_us <= options_.finals.objective.contender_factor * fastest_us &&
             std::ranges::none_of(decision.contenders,
                                  [&](const Contender& contender) { return contender.trial == i; });
    }
  }
  return finals_.cut;
}

// What another sweep decides is not overwritten between the look and the storing.
void DeviceScheduler::store_by_objective(const ObjectiveDecision& decided, const FinalsResult& result,
                                         std::optional<std::size_t> baseline, const std::vector<std::int64_t>& ids) {
  const ContextIds context = task_->stored(result.trials[decided.winner].config).context;
  bool stays = false;
  recorder_.persist([&](Store& store) {
    store.in_one_transaction([&] {
      stays = was_not_compared(store, context, result);
      if (!stays) {
        store.set_winner(context, ids[decided.winner],
                         baseline ? result.trials[*baseline].time : std::optional<TimeSummary>{}, decided.confidence,
                         decided.objective, decided.baseline_score);
      }
    });
  });
  if (stays) {
    recorder_.note(fmt::format("{}: {}: its winner by {} stays: there was no time to compare it again",
                               status_.device(), task_->search.wanted().problem.text(), phrase_of(decided.objective)));
  }
}

// As `store_others` and `announce` by time.
void DeviceScheduler::announce_by_objective(const FinalsResult& result, const std::vector<std::int64_t>& ids) {
  const ObjectiveDecision& decision = *result.by_objective;
  if (tell_undecided(decision)) {
    return;
  }
  const CompilerAxis& compilers = *task_->tunable.compilers;
  const Config standard = task_->own_bound.default_config();
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
      decide_objective(among, result.trials, baseline, options_.finals.objective);
      store_by_objective(among, result, baseline, ids);
    }
  }
  store_by_objective(decision, result, result.baseline_trial, ids);
}

}  // namespace pascaline
