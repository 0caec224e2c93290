#include "tuner/sweep/winner_decider.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pascaline {

// An earlier decision for the same device, driver, compilers and source is compared once more. Decisions on a site do
// not last: its alternatives change with the winners of their kernels.
void WinnerDecider::recall_standing(const Store& store, SweepTask& task) {
  const CompilerAxis& compilers = *task.tunable.compilers;
  earlier_.by_compiler.assign(task.rows.contexts.size(), {});
  earlier_.last.reset();
  std::vector<Config> winners;
  std::int64_t last_unix_ms = 0;
  for (std::size_t i = 0; i < task.rows.contexts.size() && task.tunable.is_lasting(); ++i) {
    const auto decided = store.decision(task.rows.contexts[i]);
    if (!decided || decided->stage != TrialStage::finals) {
      continue;
    }
    earlier_.by_compiler[i].decided = decided->id;
    const Config winner = compilers.with(decided->config, i);
    if (task.search.trial_of(winner) == 0) {  // not usable, or not any more
      continue;
    }
    winners.push_back(winner);
    StandingDecision& standing = earlier_.by_compiler[i].standing.emplace();
    standing.config = winner.text();
    standing.time = decided->time;
    standing.baseline = decided->baseline;
    standing.baseline_config =
        decided->baseline_config ? compilers.with(*decided->baseline_config, i).text() : std::string();
    standing.canary_us = decided->canary_us;
    standing.confidence = decided->confidence;
    if (decided->id.decided_unix_ms > last_unix_ms) {
      last_unix_ms = decided->id.decided_unix_ms;
      earlier_.last = i;
    }
  }
  task.search.keep_comparing(std::move(winners));
}

FinalsOptions WinnerDecider::with_what_to_compare(const SweepTask& task, FinalsOptions options) const {
  const std::optional<Config> baseline = task.search.baseline();
  options.stand_in = baseline ? baseline->text() : "";
  options.standing = earlier_.standing();
  options.energies = task.finals.energies;
  return options;
}

// Another sweep on the same database may have decided while these finals ran. Its decision stands like an earlier one,
// until finals refute it. If its winner is not a finalist here, see `is_better_elsewhere`.
FinalsResult WinnerDecider::heed_later_decisions(const Store& store, SweepTask& task, FinalsResult result,
                                                 Notes& notes) {
  const std::vector<Earlier::OfCompiler> before = earlier_.by_compiler;
  earlier_.not_compared.clear();
  if (result.from_search || !task.tunable.is_lasting() || before.empty()) {
    return result;
  }
  recall_standing(store, task);
  const auto is_finalist = [&](const std::optional<StandingDecision>& standing) {
    return standing && std::ranges::any_of(result.trials,
                                           [&](const Trial& trial) { return trial.config.text() == standing->config; });
  };
  bool to_decide = false;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Earlier::OfCompiler& now = earlier_.by_compiler[i];
    const bool later = now.decided != before[i].decided;
    if (later && !is_finalist(now.standing)) {
      earlier_.not_compared.insert(task.rows.contexts[i].toolkit);
    }
    to_decide = to_decide || (later && earlier_.last == i && is_finalist(now.standing));
  }
  if (!to_decide) {
    return result;
  }
  notes.push_back(fmt::format("{}: {}: another sweep decided it meanwhile; its winner counts as the standing one",
                              device_, task.search.wanted().problem.text()));
  result.stays = false;
  decide_finals(result, with_what_to_compare(task, budget_.options(task)));
  return result;
}

// Compares a winner that another sweep decided meanwhile, and that these finals did not time, by its gain on the
// default.
bool WinnerDecider::is_better_elsewhere(const Store& store, const ContextIds& context,
                                        const FinalsResult& result) const {
  if (!earlier_.not_compared.contains(context.toolkit)) {
    return false;
  }
  const auto stored = store.decision(context);
  if (!stored || stored->stage != TrialStage::finals || !stored->baseline || !result.baseline) {
    return false;
  }
  const auto gain = [](const TimeSummary& standard, const TimeSummary& time) {
    return time.median_us > 0 ? standard.median_us / time.median_us : 0;
  };
  return gain(*stored->baseline, stored->time) > gain(*result.baseline, *result.trials[result.winner].time);
}

// Where the winner's compiler is missing one day, the best of another is used: of each that has its default among the
// finalists, decided by the same samples.
void WinnerDecider::store_others(Store& store, const SweepTask& task, const FinalsResult& result,
                                 const std::vector<std::int64_t>& ids, Notes& notes) const {
  const CompilerAxis& compilers = *task.tunable.compilers;
  const Config standard = task.rows.own_bound.default_config();
  for (std::size_t compiler = 0; compiler < compilers.count(); ++compiler) {
    if (compiler == compilers.index_of(result.trials[result.winner].config)) {
      continue;
    }
    std::vector<std::size_t> members;
    std::optional<std::size_t> baseline;
    for (std::size_t i = 0; i < result.trials.size(); ++i) {
      const Config& config = result.trials[i].config;
      if (compilers.index_of(config) == compiler) {
        baseline = config == compilers.with(standard, compiler) ? std::optional(i) : baseline;
        members.push_back(i);
      }
    }
    if (baseline) {
      FinalsOptions options = options_.finals;
      options.standing = earlier_.by_compiler.at(compiler).standing;
      const FinalsResult among = decide_among(result, members, *baseline, options);
      store_decision(store, task, task.rows.contexts[compiler], among, ids[members[among.winner]], notes);
    }
  }
}

void WinnerDecider::store_decision(Store& store, const SweepTask& task, const ContextIds& context,
                                   const FinalsResult& result, std::int64_t trial, Notes& notes) const {
  if (is_better_elsewhere(store, context, result)) {
    notes.push_back(fmt::format("{}: {}: another sweep decided it meanwhile, with a winner that gains more; that stays",
                                device_, task.search.wanted().problem.text()));
  } else if (result.stays) {
    store.confirm_winner(context);
  } else {
    store.set_winner(context, trial, result.baseline, result.confidence);
  }
}

// The winner of all is decided last. Nothing if what finals have decided stays.
std::optional<FinalsResult> WinnerDecider::decide_and_store(Store& store, SweepTask& task, const FinalsResult& decided,
                                                            const std::vector<std::int64_t>& ids, Notes& notes) {
  FinalsResult result = heed_later_decisions(store, task, decided, notes);
  const Config& winner = result.trials[result.winner].config;
  if (result.from_search && decided_in_finals(store, task, winner)) {
    return std::nullopt;
  }
  if (!result.from_search) {
    store_others(store, task, result, ids, notes);
  }
  store_decision(store, task, task.rows.stored(winner).context, result, ids[result.winner], notes);
  return result;
}

void WinnerDecider::announce(SweepTask& task, const FinalsResult& decided, const std::vector<std::int64_t>& ids,
                             const FinalsLimits& limits) {
  // Another sweep must not decide between the look and the storing. Where the database was locked it is done again.
  const Earlier before = earlier_;
  Notes notes;
  std::optional<FinalsResult> stored;
  recorder_.persist([&](Store& store) {
    earlier_ = before;
    notes.clear();
    store.in_one_transaction([&] { stored = decide_and_store(store, task, decided, ids, notes); });
  });
  for (const std::string& note : notes) {
    recorder_.note(note);
  }
  if (!stored) {
    return;
  }
  const FinalsResult& result = *stored;
  if (result.by_objective) {
    by_objective_.announce(task, result, ids, limits);
  }
  recorder_.count_decided(task);
  note(task, result);
  task.result.provisional = result.from_search;
  task.look.no_time = result.from_search ? "" : task.look.no_time_by_objective;
  report_winner(task, result);
}

void WinnerDecider::report_winner(const SweepTask& task, const FinalsResult& result) const {
  if (!recorder_.events().winner) {
    return;
  }
  FinalsResult reported = result;
  const CompilerAxis& compilers = *task.tunable.compilers;
  if (compilers.several()) {
    reported.shown.compiler = compilers.compilers()[compilers.index_of(reported.trials[reported.winner].config)].text();
    for (Trial& trial : reported.trials) {
      trial.config = compilers.without(trial.config);
    }
  }
  if (result.stays) {
    reported.shown.standing = earlier_.standing();
  }
  reported.shown.baseline_why = result.baseline ? task.search.why_no_default() : "";
  recorder_.events().winner(device_, task.search.wanted(), reported, task.search.done());
}

// For the time that may be left.
void WinnerDecider::note(SweepTask& task, const FinalsResult& result) {
  if (auto energies = energies_of(result.trials); energies && !result.from_search && !result.energies_again) {
    task.finals.energies = std::move(energies);
  }
  const Config& winner = result.trials[result.winner].config;
  if (task.deepening.what == Deepening::finals) {
    DeepeningCounts& counts = recorder_.summary().deepening;
    ++counts.finals;
    counts.winners_changed += task.result.winner == winner ? 0 : 1;
  }
  agenda_.note_winner(task, winner);
  task.finals.open = result.from_search ? OpenFinals{} : open_finals(result.trials, result.winner);
}

bool WinnerDecider::decided_in_finals(const Store& store, const SweepTask& task, const Config& config) {
  const auto decided = store.decision(task.rows.stored(config).context);
  return decided && decided->stage == TrialStage::finals;
}

void WinnerDecider::decide_without_finals(SweepTask& task) {
  const ProblemSearch& search = task.search;
  if (search.usable() > 0 && task.lacks_alternatives()) {
    task.look.no_time = kNotAllWays;
    return;
  }
  const auto is_decided = [&](const Store& store) { return decided_in_finals(store, task, search.best()); };
  const bool compared_none = search.done() + search.reused().all < 2 && !search.spent();
  const bool reported = task.result.decided && task.result.winner == search.best();
  if (search.usable() == 0 || compared_none || reported || recorder_.persist(is_decided)) {
    return;
  }
  const std::optional<Config> baseline = search.baseline();
  std::vector<Config> compared{search.best()};
  if (baseline && *baseline != search.best()) {
    compared.push_back(*baseline);
  }
  std::vector<std::int64_t> ids;
  std::vector<Trial> trials;
  for (const Config& config : compared) {
    const std::int64_t id = ids.emplace_back(search.trial_of(config));
    TrialFilter filter;
    filter.trial_id = id;
    std::vector<StoredTrial> stored = recorder_.persist([&](Store& store) { return store.trials(filter); });
    if (stored.size() != 1 || !stored.front().trial.time) {
      return;  // shared with what the machine went down on, or gone: there is nothing to decide by
    }
    trials.push_back(std::move(stored.front().trial));
    trials.back().config = config;
  }
  announce(
      task,
      decide_from_search(std::move(trials), baseline ? std::optional(ids.size() - 1) : std::nullopt, search.usable()),
      ids, {});
}

}  // namespace pascaline
