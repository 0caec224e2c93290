#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tuner/measure/trial_setup.hpp"
#include "tuner/sweep/device_scheduler.hpp"

// The finals of a task: what is compared, in how much time, and what is decided.
namespace pascaline {
namespace {

constexpr double kShareOfFinals = 0.2;         // of the whole time, where that is enough for any finals
constexpr double kLargestShareOfFinals = 0.5;  // where it is not
constexpr double kEnergySeconds = 7;           // of winner and baseline, at most
constexpr double kDecisionSeconds = 0.3;
constexpr const char* kNotAllWays = "not all ways to compute it were measured";
constexpr int kLooksAgain = 4;          // in as many rounds as finals before them had
constexpr double kAnswerSeconds = 0.3;  // from the worker's last launch to its decision in the database

}  // namespace

FinalsNeed DeviceScheduler::finals_need() const {
  const ProblemSearch& search = task_->search;
  const std::optional<Config> baseline = search.baseline();
  FinalsNeed need;
  for (const Config& config : task_->wanted_finalists(by_time_alone())) {
    if (config == baseline) {
      need.baseline_s = search.launch_s(config);
    } else {
      need.launch_s.push_back(search.launch_s(config));
    }
  }
  const FinalsOptions finals = finals_options();
  need.rounds = finals.rounds;
  need.fewest_wanted = finals.min_rounds;
  need.fewest = std::min(kFewestFinalsRounds, finals.rounds);
  need.launches = finals.launches;
  return need;
}

bool DeviceScheduler::by_time_alone() const { return options_.finals.objective.objective == Objective::time; }

bool DeviceScheduler::takes_energies() const {
  return !by_time_alone() || task_->spent_s >= options_.finals.energy_after_search_s;
}

// Held again, finals have more rounds, and what they call a tie is as much narrower as medians are known better. Their
// first look comes when those before were over.
FinalsOptions DeviceScheduler::finals_options() const {
  FinalsOptions options = options_.finals;
  if (!takes_energies()) {
    options.energy_window_ms = 0;
  }
  if (task_->deepening == Deepening::finals) {
    const int factor = rounds_factor(task_->finals_again);
    options.min_rounds = std::max(options.min_rounds, options.rounds * factor / rounds_factor(1));
    options.rounds *= factor;
    options.rounds_per_look = std::max(options.rounds_per_look, options.min_rounds / kLooksAgain);
    options.tie_width /= std::sqrt(static_cast<double>(factor));
  }
  return options;
}

// Of windows by another objective, the fewest that decide anything.
double DeviceScheduler::objective_s() const {
  const ObjectiveOptions& objective = options_.finals.objective;
  return kContendersByObjective * objective.min_rounds * window_seconds(objective, options_.finals.energy_window_ms);
}

// Of the time, what finals after those of all others may take that the objective is decided in, if nothing is stored.
double DeviceScheduler::wanted_finals_s(double share_s, double left_s) const {
  if (finals_.shared || by_time_alone() || !lacks_objective()) {
    return share_s;
  }
  const FinalsNeed need = finals_need();
  const double all_s = finals_seconds(need, {need.launch_s.size(), need.fewest_wanted}) + kDecisionSeconds +
                       kAnswerSeconds + objective_s();
  return std::max(share_s, std::min(left_s, all_s));
}

// The best and the baseline, just often enough to tell them apart.
double DeviceScheduler::min_finals_s() const {
  const std::string key = task_->search.finalists_key();
  if (key.empty() || key == task_->decided_on) {
    return 0;
  }
  const FinalsNeed need = finals_need();
  return finals_seconds(need, {1, need.fewest}) + kDecisionSeconds;
}

double DeviceScheduler::finals_reserve_s(double limit_s) const {
  const double least_s = min_finals_s();
  if (!(least_s > 0)) {
    return 0;
  }
  const FinalsNeed need = finals_need();
  const double all_s = finals_seconds(need, {need.launch_s.size(), need.rounds}) + kDecisionSeconds +
                       std::max(status_.tells_power() && takes_energies() ? kEnergySeconds : 0, objective_s());
  const double most_s = std::max(kShareOfFinals * limit_s, std::min(least_s, kLargestShareOfFinals * limit_s));
  return std::min(all_s, most_s);
}

bool DeviceScheduler::lacks_alternatives() const {
  return task_->kernel.is_place && (!task_->search.spent() || task_->search.open() > 0);
}

void DeviceScheduler::begin_finals(bool last, std::optional<double> allowed_s) {
  // With a limit of time a place of a model is compared again at the end, when its kernels are tuned.
  const bool twice = task_->kernel.is_place && left_s_;
  finals_.last = last && !(twice && !task_->compared);
  finals_.cut = false;
  finals_.allowed_s = allowed_s;
  const std::string key = task_->search.finalists_key();
  const bool again = task_->deepening == Deepening::finals;
  // Neighbours of winners are compared with them only where one is faster.
  const bool none_faster =
      task_->deepening == Deepening::neighbours && !(task_->search.best_us() < task_->best_before_us);
  if (lacks_alternatives()) {
    task_->no_time = kNotAllWays;
    leave_preparing();
    release_task(last);
    return;
  }
  if (key.empty() || (key == task_->decided_on && !twice && !again) || none_faster) {
    task_->decided_on = none_faster ? key : task_->decided_on;
    leave_preparing();
    release_task(last);
    return;
  }
  task_->compared = true;
  task_->decided_on = key;
  recall_standing();
  task_->state.gather();
  plan_.gather_finalists(*task_);
  send_finals();
}

// What was decided before for the same device, driver, compilers and source is to be shown wrong, or better known. What
// the alternatives of a place are changes with the winners of their kernels.
void DeviceScheduler::recall_standing() {
  const CompilerAxis& compilers = *task_->kernel.compilers;
  task_->standing.assign(task_->contexts.size(), std::nullopt);
  task_->standing_of_all.reset();
  task_->decided_unix_ms.assign(task_->contexts.size(), 0);
  std::vector<Config> winners;
  std::int64_t last_unix_ms = 0;
  for (std::size_t i = 0; i < task_->contexts.size() && !task_->kernel.is_place; ++i) {
    const auto decided = recorder_.persist([&](Store& store) { return store.decision(task_->contexts[i]); });
    if (!decided || decided->stage != TrialStage::finals) {
      continue;
    }
    task_->decided_unix_ms[i] = decided->decided_unix_ms;
    const Config winner = compilers.with(decided->config, i);
    if (task_->search.trial_of(winner) == 0) {  // not usable, or not any more
      continue;
    }
    winners.push_back(winner);
    StandingDecision& standing = task_->standing[i].emplace();
    standing.config = winner.text();
    standing.time = decided->time;
    standing.baseline = decided->baseline;
    standing.baseline_config =
        decided->baseline_config ? compilers.with(*decided->baseline_config, i).text() : std::string();
    standing.canary_us = decided->canary_us;
    standing.confidence = decided->confidence;
    if (decided->decided_unix_ms > last_unix_ms) {
      last_unix_ms = decided->decided_unix_ms;
      task_->standing_of_all = i;
    }
  }
  task_->search.keep_comparing(std::move(winners));
}

std::optional<StandingDecision> DeviceScheduler::standing() const {
  return task_->standing_of_all ? task_->standing.at(*task_->standing_of_all) : std::nullopt;
}

// With what the finalists are compared with: the baseline, and what finals decided before.
FinalsOptions DeviceScheduler::decision_options() const {
  FinalsOptions options = finals_options();
  const std::optional<Config> baseline = task_->search.baseline();
  options.stand_in = baseline ? baseline->text() : "";
  options.standing = standing();
  return options;
}

// Another sweep on the same database may have decided while these finals ran: what it decided is to be shown wrong as
// what was decided before. Where its winner is no finalist here, see `is_better_elsewhere`.
FinalsResult DeviceScheduler::heed_later_decisions(FinalsResult result) {
  const std::vector<std::int64_t> before = task_->decided_unix_ms;
  task_->later_decisions.clear();
  if (result.from_search || task_->kernel.is_place || before.empty()) {
    return result;
  }
  recall_standing();
  const auto is_finalist = [&](const std::optional<StandingDecision>& standing) {
    return standing && std::ranges::any_of(result.trials,
                                           [&](const Trial& trial) { return trial.config.text() == standing->config; });
  };
  bool to_decide = false;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool later = task_->decided_unix_ms[i] != before[i];
    if (later && !is_finalist(task_->standing[i])) {
      task_->later_decisions.insert(task_->contexts[i].toolkit);
    }
    to_decide = to_decide || (later && task_->standing_of_all == i && is_finalist(task_->standing[i]));
  }
  if (!to_decide) {
    return result;
  }
  recorder_.note(fmt::format("{}: {}: another sweep decided it meanwhile, and its winner counts as the one before",
                             status_.device(), task_->search.wanted().problem.text()));
  result.stays = false;
  decide_finals(result, decision_options());
  return result;
}

// Of a winner that another sweep decided meanwhile and these finals did not time: by what both gain on the default.
bool DeviceScheduler::is_better_elsewhere(const ContextIds& context, const FinalsResult& result) const {
  if (!task_->later_decisions.contains(context.toolkit)) {
    return false;
  }
  const auto stored = recorder_.persist([&](Store& store) { return store.decision(context); });
  if (!stored || stored->stage != TrialStage::finals || !stored->baseline || !result.baseline) {
    return false;
  }
  const auto gain = [](const TimeSummary& standard, const TimeSummary& time) {
    return time.median_us > 0 ? standard.median_us / time.median_us : 0;
  };
  return gain(*stored->baseline, stored->time) > gain(*result.baseline, *result.trials[result.winner].time);
}

// Takes rounds, and then finalists, away until the rest fits the time; false if nothing does.
bool DeviceScheduler::fit_in_time(FinalsJob& job, std::size_t& most) {
  if (!finals_.allowed_s) {
    return true;
  }
  const double allowed_s = std::min(*finals_.allowed_s, left_s_.value_or(*finals_.allowed_s)) - kAnswerSeconds;
  const FinalsNeed need = finals_need();
  // What the other objective needs is left to it where rounds are enough without.
  auto fit = fit_finals(need, allowed_s - objective_s());
  fit = fit ? fit : fit_finals(need, allowed_s);
  if (!fit) {
    return false;
  }
  finals_.cut = fit->finalists < need.launch_s.size() || fit->rounds < std::min(need.rounds, need.fewest_wanted);
  job.allowed_s = allowed_s;
  job.options.rounds = fit->rounds;
  most = fit->finalists;
  return true;
}

void DeviceScheduler::send_finals() {
  if (task_->misses_finalists() || !set_problem()) {
    return;
  }
  FinalsJob job;
  job.id = next_job_++;
  job.options = decision_options();
  job.best_us = task_->search.best_us();
  job.allowed_s = finals_.allowed_s;
  const std::optional<Config> baseline = task_->search.baseline();
  const std::vector<Config> wanted_finalists = task_->wanted_finalists(by_time_alone());
  std::size_t most = wanted_finalists.size();
  if (!fit_in_time(job, most)) {
    decide_without_finals();
    release_for_later();
    return;
  }
  if (job.options.standing && job.options.standing->config != job.options.stand_in) {
    most = std::max<std::size_t>(most, 2);  // nothing takes its place that was not compared with it
  }
  for (const Config& config : wanted_finalists) {
    const auto binary = task_->finalists.find(config.text());
    const bool wanted = job.finalists.size() < most || config == baseline;
    if (wanted && binary != task_->finalists.end() && binary->second) {
      Trial blank = blank_trial(task_->search.bound(), config, *binary->second);
      blank.stage = TrialStage::finals;
      const SweepTask::Stored stored = task_->stored(config);
      recorder_.persist([&](Store& store) {
        store.begin_attempt(session_, stored.context, stored.config, TrialStage::finals, stored.is_default);
      });
      finals_.on_device.push_back(config);
      job.finalists.emplace_back(std::move(blank), std::move(*binary->second));
    }
  }
  task_->finalists.clear();
  if (job.finalists.empty()) {
    release_task(finals_.last);
    return;
  }
  task_->state.compare();
  client_.submit(std::move(job));
}

void DeviceScheduler::end_finals_attempts() {
  for (const Config& config : finals_.on_device) {
    end_attempt(config);
  }
  finals_.on_device.clear();
}

void DeviceScheduler::drop_finals() {
  end_finals_attempts();
  task_->decided_on.clear();
}

// Finals for which there was too little time: with what is left when all problems were looked at there may be more.
void DeviceScheduler::release_for_later() {
  task_->decided_on.clear();
  release_task(finals_.last && !finals_.shared);
}

void DeviceScheduler::on_finals(const FinalsDone& done) {
  end_finals_attempts();
  if (done.result) {
    for (const Trial& failed : done.result->failed) {
      on_finalist_failed(FinalistFailed{failed});
    }
  }
  if (done.result && done.result->out_of_time) {
    decide_without_finals();
    release_for_later();
    return;
  }
  if (done.result) {
    std::vector<std::int64_t> ids;
    for (const Trial& trial : done.result->trials) {
      ids.push_back(add_trial(trial));
    }
    announce(*done.result, ids);
    // What they were to be compared with failed; another one takes its place.
    if (!done.result->baseline && task_->search.baseline()) {
      begin_finals(finals_.last, finals_.allowed_s);
      return;
    }
  }
  const bool objective_later = done.result && done.result->by_objective && done.result->by_objective->out_of_time;
  if ((finals_.cut || objective_later) && finals_.shared) {
    release_for_later();
  } else {
    release_task(finals_.last);
  }
}

void DeviceScheduler::on_finalist_failed(const FinalistFailed& failed) {
  recorder_.note(fmt::format("{}: a finalist failed: {}: {} ({})", status_.device(), name_of(failed.trial.status),
                             failed.trial.reason, failed.trial.config.text()));
  add_trial(failed.trial);
  std::erase(finals_.on_device, failed.trial.config);
  task_->search.discard(failed.trial.config);
}

std::int64_t DeviceScheduler::add_trial(const Trial& trial) {
  const ContextIds context = task_->stored(trial.config).context;
  const Trial stored = task_->stored_trial(trial);
  return recorder_.persist([&](Store& store) { return store.add_trial(session_, context, stored); });
}

// Where the winner's compiler is missing one day, the best of another is used: of each that has its default among the
// finalists, decided by the same samples.
void DeviceScheduler::announce_others(const FinalsResult& result, const std::vector<std::int64_t>& ids) {
  const CompilerAxis& compilers = *task_->kernel.compilers;
  const Config standard = task_->own_bound.default_config();
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
      options.standing = task_->standing.at(compiler);
      const FinalsResult among = decide_among(result, members, *baseline, options);
      store_decision(task_->contexts[compiler], among, ids[members[among.winner]]);
    }
  }
}

void DeviceScheduler::store_decision(const ContextIds& context, const FinalsResult& result, std::int64_t trial) {
  if (is_better_elsewhere(context, result)) {
    recorder_.note(fmt::format("{}: {}: another sweep decided it meanwhile, with a winner that gains more; that stays",
                               status_.device(), task_->search.wanted().problem.text()));
    return;
  }
  recorder_.persist([&](Store& store) {
    if (result.stays) {
      store.confirm_winner(context);
    } else {
      store.set_winner(context, trial, result.baseline, result.confidence);
    }
  });
}

// The winner of all is decided last.
void DeviceScheduler::announce(const FinalsResult& decided, const std::vector<std::int64_t>& ids) {
  const FinalsResult result = heed_later_decisions(decided);
  if (!result.from_search) {
    announce_others(result, ids);
  }
  store_decision(task_->stored(result.trials[result.winner].config).context, result, ids[result.winner]);
  if (result.by_objective) {
    announce_by_objective(result, ids);
  }
  if (!task_->decided) {
    task_->decided = true;
    recorder_.summary().problems_done += task_->search.wanted().between ? 0 : 1;
  }
  note_decision(result);
  task_->no_time = result.from_search ? "decided by the search's trials, without finals" : task_->no_time_by_objective;
  if (recorder_.events().winner) {
    FinalsResult told = result;
    const CompilerAxis& compilers = *task_->kernel.compilers;
    if (compilers.several()) {
      told.compiler = compilers.compilers()[compilers.index_of(told.trials[told.winner].config)].text();
      for (Trial& trial : told.trials) {
        trial.config = compilers.without(trial.config);
      }
    }
    if (result.stays) {
      told.standing = standing();
    }
    told.baseline_why = result.baseline ? task_->search.why_no_default() : "";
    recorder_.events().winner(status_.device(), task_->search.wanted(), told, task_->search.done());
  }
}

// For the time that may be left.
void DeviceScheduler::note_decision(const FinalsResult& result) {
  const Config& winner = result.trials[result.winner].config;
  if (task_->deepening == Deepening::finals) {
    DeepeningCounts& counts = recorder_.summary().deepening;
    ++counts.finals;
    counts.winners_changed += task_->winner == winner ? 0 : 1;
  }
  plan_.note_winner(*task_, winner);
  task_->open_finals = result.from_search ? OpenFinals{} : open_finals(result.trials, result.winner);
}

bool DeviceScheduler::lacks_objective() const {
  return !by_time_alone() && std::ranges::none_of(task_->contexts, [this](const ContextIds& context) {
    return recorder_.persist(
        [&](Store& store) { return store.decision(context, options_.finals.objective.objective).has_value(); });
  });
}

// Why nothing was decided, if so; a winner that is stored stays, and what is told once is not told again.
bool DeviceScheduler::tell_undecided(const ObjectiveDecision& decision) {
  const std::string what = fmt::format("{}: {}: no winner by {}", status_.device(),
                                       task_->search.wanted().problem.text(), name_of(decision.objective));
  const bool told = !task_->no_time_by_objective.empty();
  const bool lacks = lacks_objective();
  task_->objective_put_off = decision.out_of_time && finals_.shared && lacks;
  task_->no_time_by_objective =
      decision.out_of_time && lacks ? fmt::format("no winner by {}", name_of(decision.objective)) : std::string();
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
bool DeviceScheduler::was_not_compared(const ContextIds& context, const FinalsResult& result) const {
  const ObjectiveDecision& decision = *result.by_objective;
  const auto stored = recorder_.persist([&](Store& store) { return store.decision(context, decision.objective); });
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

// As `announce_others` and `announce` by time.
void DeviceScheduler::announce_by_objective(const FinalsResult& result, const std::vector<std::int64_t>& ids) {
  const ObjectiveDecision& decision = *result.by_objective;
  if (tell_undecided(decision)) {
    return;
  }
  const auto store_decision = [&](const ObjectiveDecision& decided, std::optional<std::size_t> baseline) {
    const ContextIds context = task_->stored(result.trials[decided.winner].config).context;
    if (was_not_compared(context, result)) {
      recorder_.note(fmt::format("{}: {}: its winner by {} stays: there was no time to compare it again",
                                 status_.device(), task_->search.wanted().problem.text(), name_of(decided.objective)));
      return;
    }
    recorder_.persist([&](Store& store) {
      store.set_winner(context, ids[decided.winner],
                       baseline ? result.trials[*baseline].time : std::optional<TimeSummary>{}, decided.confidence,
                       decided.objective, decided.baseline_score);
    });
  };
  const CompilerAxis& compilers = *task_->kernel.compilers;
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
      store_decision(among, baseline);
    }
  }
  store_decision(decision, result.baseline_trial);
}

bool DeviceScheduler::decided_in_finals(const Config& config) const {
  const ContextIds context = task_->stored(config).context;
  const auto decided = recorder_.persist([&](Store& store) { return store.decision(context); });
  return decided && decided->stage == TrialStage::finals;
}

// What finals have decided before, of the same compiler, is better founded, and stays.
void DeviceScheduler::decide_without_finals() {
  const ProblemSearch& search = task_->search;
  if (search.usable() > 0 && lacks_alternatives()) {
    task_->no_time = kNotAllWays;
    return;
  }
  if (search.usable() == 0 || decided_in_finals(search.best())) {
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
  const FinalsResult result =
      decide_from_search(std::move(trials), baseline ? std::optional(ids.size() - 1) : std::nullopt, search.usable());
  if (!decided_in_finals(compared[result.winner])) {
    announce(result, ids);
  }
}

}  // namespace pascaline
