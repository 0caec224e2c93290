#include "tuner/sweep/actions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "core/space/shape_distance.hpp"
#include "tuner/sweep/default_times.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kNeighboursATurn = 32;
constexpr double kTrialSeconds = 0.1;      // where none was measured yet
constexpr double kTrialsOfFirstLook = 16;  // with finals
constexpr double kFewestTrials = 4;        // for which a shape is begun
constexpr int kMinRoundsAgain = 2;
constexpr double kMinActionSeconds = 1e-3;
// Expected savings, as shares of a problem's time: by finals that are still to come, and by a repeated comparison of a
// site's configurations after kernels that they launch got new winners.
constexpr double kShareByFinals = 0.02;
constexpr double kShareByComparison = 0.02;

// Calls of a length between listed ones, relative to the calls of these. It is a guess.
constexpr double kCallsBetween = 0.1;

// Of what was not measured yet.
constexpr double kTrialOverheadSeconds = 0.03;
constexpr double kSamplesExpected = 30;
constexpr double kMinLaunches = 6;        // of a trial: one is verified, two warm up, three are timed
constexpr double kReferenceLaunches = 5;  // how much longer a naive kernel takes
constexpr double kPreparationSeconds = 0.2;
constexpr double kPreparationSecondsPerByte = 2e-9;
constexpr double kPatienceAfterPutOff = 2;  // times the time in which nothing ran

// Of a trial, the mean over all problems.
double mean_trial_s(const Agenda::Tasks& tasks) {
  double sum_s = 0;
  int trials = 0;
  for (const auto& task : tasks) {
    sum_s += task->costs.spent_s;
    trials += task->costs.trials;
  }
  return trials > 0 ? sum_s / trials : kTrialSeconds;
}

// How much slower the winner of one shape is on another shape than the best there; nothing if it was not tried there.
std::optional<double> loss_of(const SweepTask& winner_of, const SweepTask& on) {
  const auto time_us = on.search.time_us(*winner_of.result.winner);
  return time_us && on.search.best_us() > 0 ? std::optional(*time_us / on.search.best_us() - 1) : std::nullopt;
}

bool waits(const SweepTask& task) { return task.state.stage() == TaskStage::waiting; }

// Discounts a comparison whose kernels were not all looked at: it would be repeated after their first looks.
double share_looked_at(const SweepTask& task) {
  const auto looked_at =
      std::ranges::count_if(task.launches.tasks, [](const SweepTask* other) { return !other->fresh(); });
  return (1.0 + static_cast<double>(looked_at)) / (1.0 + static_cast<double>(task.launches.tasks.size()));
}

void sort_by_value(std::vector<Action>& actions, std::optional<double> left_s) {
  std::ranges::stable_sort(actions, [&](const Action& a, const Action& b) {
    const bool a_late = left_s && a.least_s > *left_s;
    const bool b_late = left_s && b.least_s > *left_s;
    return a_late != b_late ? b_late : a.rate() > b.rate();
  });
}

// Threads of the default's launches; 0 of one that cannot be launched. It is asked for at every step, so that no
// configuration is built for it.
double default_threads(const BoundSpace& bound) {
  double threads = 0;
  for (const Launch& launch : bound.space().launches) {
    double of_launch = 1;
    for (std::size_t i = 0; i < launch.grid.size(); ++i) {
      for (const Expression* size : {&launch.grid[i], &launch.block[i]}) {
        of_launch *= static_cast<double>(std::max<std::int64_t>(0, size->try_evaluate(bound.base_slots()).value_or(0)));
      }
    }
    threads += of_launch;
  }
  return threads;
}

double bound_us(const SweepTask& task, const std::optional<DeviceRates>& rates) {
  const BoundSpace& bound = task.search.bound();
  return least_time_us(bound.flops(), bound.bytes(), rates, rates ? 0 : default_threads(bound));
}

DefaultTimes default_times(const Agenda::Tasks& tasks, const std::optional<DeviceRates>& rates) {
  DefaultTimes times;
  for (const auto& task : tasks) {
    if (task->search.default_us() > 0 && task->tunable.is_lasting()) {
      times.add(&task->tunable, std::log(task->search.default_us() / bound_us(*task, rates)));
    }
  }
  return times;
}

}  // namespace

bool Agenda::is_settled(const SweepTask& task) const {
  return task.at_its_end() && (task.search.usable() == 0 || task.finals.decided_on == task.search.finalists_key());
}

bool Agenda::keeps(const SweepTask& task) const {
  return has_time_limit(options_) && (deepens(options_) || task.tunable.compares_all()) && task.fault.empty() &&
         task.search.usable() > 0;
}

std::vector<Action> Agenda::searches(std::optional<double> left_s) const {
  std::vector<Action> found;
  if (!has_time_limit(options_)) {
    for (const auto& task : tasks_) {
      if (waits(*task)) {
        found.push_back({task.get()});
      }
    }
    return found;
  }
  const std::vector<Outlook> all = outlooks();
  const AttainedRates rates = attained_rates(all, rates_);
  for (const auto& task : tasks_) {
    if (waits(*task)) {
      if (const auto action = search(*task, all[task->index], rates)) {
        found.push_back(*action);
      }
    }
  }
  sort_by_value(found, left_s);
  return found;
}

std::vector<Action> Agenda::actions(std::optional<double> left_s) const {
  std::vector<Action> found = searches(left_s);
  if (!has_time_limit(options_)) {
    return found;
  }
  const double trial_s = mean_trial_s(tasks_);
  const auto add = [&](const std::optional<Action>& action) {
    if (action) {
      found.push_back(*action);
    }
  };
  for (const auto& task : tasks_) {
    const bool settled = waits(*task) && keeps(*task) && is_settled(*task);
    add(settled ? comparison(*task) : std::nullopt);
    if (!deepens(options_)) {
      continue;
    }
    add(settled && task->tunable.is_lasting() ? finals_again(*task) : std::nullopt);
    if (options_.search.searcher != kNoSearcher) {
      add(settled && task->tunable.is_lasting() ? neighbours(*task, task->costs.trial_s().value_or(trial_s))
                                                : std::nullopt);
      add(task->state.reserved() ? shape_between(*task, trial_s) : std::nullopt);
    }
  }
  sort_by_value(found, left_s);
  return found;
}

// More trials, and the finals after them.
std::optional<Action> Agenda::search(SweepTask& task, const Outlook& outlook, const AttainedRates& rates) const {
  const bool over = task.search.spent() && task.search.open() == 0;
  if (over && keeps(task) && is_settled(task)) {
    return std::nullopt;
  }
  const SearchAction next = next_search(outlook, rates);
  Action action{&task, Deepening::none, next.seconds, next.saved_us};
  action.least_s = outlook.least_s;
  const double all_us = task.weight * outlook.time_us;
  const bool put_off = !task.look.had && task.look.put_off_s > 0;
  if (put_off && any_fresh()) {  // others come first
    action.saved_us = 0;
  } else if (task.look.finals_put_off) {  // its finals follow the first looks at all tasks
    action.saved_us = any_fresh() ? 0 : std::numeric_limits<double>::infinity();
  } else if (over) {
    action.saved_us = kShareByFinals * all_us;
  } else if (task.search.little_left()) {
    action.saved_us = std::min(action.saved_us, options_.search.min_gain * all_us);
  }
  const bool left_by_interrupt = task.look.had && !task.result.decided && task.costs.trials == 0;
  if (left_by_interrupt && task.search.best_us() < task.search.default_us()) {  // only finals make that a result
    action.saved_us = std::numeric_limits<double>::infinity();
  }
  action.saved_us *= share_looked_at(task);
  return action;
}

std::optional<Action> Agenda::comparison(SweepTask& task) const {
  if (!task.finals.begun || task.launches.winners_then == task.launches.winners()) {
    return std::nullopt;
  }
  Action action{&task, Deepening::comparison, std::max(kMinActionSeconds, task.costs.first_look_s)};
  action.saved_us = task.weight * task.search.best_us() * kShareByComparison;
  action.share = kShareByComparison;
  action.least_s = action.seconds;
  return action;
}

std::optional<Action> Agenda::finals_again(SweepTask& task) const {
  const OpenFinals& open = task.finals.open;
  if (task.finals.again >= kMaxFinalsAgain || open.close == 0 || !(open.share > 0) ||
      open.share < options_.search.min_gain || options_.finals.rounds < kMinRoundsAgain) {
    return std::nullopt;
  }
  const double once_s =
      std::accumulate(open.among.begin(), open.among.end(), 0.0,
                      [&](double sum_s, const std::string& config) { return sum_s + task.search.launch_s_of(config); });
  const double rounds = options_.finals.rounds * rounds_factor(task.finals.again + 1);
  Action action{&task, Deepening::finals, std::max(kMinActionSeconds, once_s * rounds * options_.finals.launches)};
  action.saved_us = task.weight * task.search.best_us() * open.share;
  action.share = open.share;
  return action;
}

std::optional<Action> Agenda::neighbours(SweepTask& task, double trial_s) const {
  const double share = expected_of_neighbour(task.deepening.near_winner);
  if (task.deepening.near_winner.none_left || !task.search.may_try() || share < options_.search.min_gain) {
    return std::nullopt;
  }
  Action action{&task, Deepening::neighbours, std::max(kMinActionSeconds, trial_s)};
  action.saved_us = task.weight * task.search.best_us() * share;
  action.share = share;
  return action;
}

std::optional<Action> Agenda::shape_between(SweepTask& task, double trial_s) const {
  const std::vector<Near> around = tuned_around(task);
  if (around.empty() || around.front().octaves <= 0) {
    return std::nullopt;
  }
  double weight = 0;
  double log_us = 0;
  for (const Near& near : around) {
    weight += kCallsBetween * near.task->weight / static_cast<double>(around.size());
    log_us += std::log(std::max(near.task->search.best_us(), 1e-3)) / static_cast<double>(around.size());
  }
  std::optional<double> cross_loss;
  double apart = 0;
  if (around.size() == 2) {
    const auto forth = loss_of(*around[0].task, *around[1].task);
    const auto back = loss_of(*around[1].task, *around[0].task);
    cross_loss = forth && back ? std::optional((*forth + *back) / 2) : forth ? forth : back;
    apart = around[0].octaves + around[1].octaves;
  }
  Action action{&task, Deepening::between, kTrialsOfFirstLook * trial_s};
  action.share = expected_of_shape(around.front().octaves, cross_loss, apart);
  action.saved_us = weight * std::exp(log_us) * action.share;
  action.weight = weight;
  action.least_s = kFewestTrials * trial_s;
  return action.share < options_.search.min_gain ? std::nullopt : std::optional(action);
}

// The tuned shapes on either side of the task's shape: the nearest one, by the dispatcher's distance, and the nearest
// one beyond, which is farther from the first than both are from the task's shape.
std::vector<Agenda::Near> Agenda::tuned_around(const SweepTask& task) const {
  const Space& space = *task.tunable.own_space;
  const Problem& problem = task.search.wanted().problem;
  std::vector<Near> tuned;
  for (const auto& other : tasks_) {
    if (other.get() != &task && !other->state.reserved() && &other->tunable == &task.tunable && other->result.winner) {
      if (const auto octaves = shape_distance(space, problem, other->search.wanted().problem)) {
        tuned.push_back({*octaves, other.get()});
      }
    }
  }
  std::ranges::stable_sort(tuned, {}, &Near::octaves);
  if (tuned.empty()) {
    return tuned;
  }
  const Near first = tuned.front();
  std::vector<Near> around{first};
  const auto beyond = std::find_if(tuned.begin() + 1, tuned.end(), [&](const Near& other) {
    const auto apart = shape_distance(space, first.task->search.wanted().problem, other.task->search.wanted().problem);
    return apart && *apart > std::max(first.octaves, other.octaves);
  });
  if (beyond != tuned.end()) {
    around.push_back(*beyond);
  }
  return around;
}

// Its own winner first, then those of the kernel's other shapes, the nearest first.
std::vector<Config> Agenda::winners_near(const SweepTask& task) const {
  std::vector<Config> winners;
  if (task.result.winner) {
    winners.push_back(*task.result.winner);
  }
  for (const Near& near : tuned_around(task)) {
    if (std::ranges::find(winners, *near.task->result.winner) == winners.end()) {
      winners.push_back(*near.task->result.winner);
    }
  }
  return winners;
}

bool Agenda::begin(const Action& action) const {
  SweepTask& task = *action.task;
  switch (action.what) {
    case Deepening::none:
    case Deepening::comparison:
      break;
    case Deepening::neighbours: {
      const std::vector<Config> near = task.search.untried_near(winners_near(task), kNeighboursATurn);
      task.deepening.near_winner.none_left = near.empty();
      if (near.empty()) {
        return false;
      }
      task.search.try_only(near);
      task.deepening.trying = near.size();
      break;
    }
    case Deepening::between:
      task.weight = action.weight;
      task.search.begin_with_winners(winners_near(task));
      task.state.open();
      break;
    case Deepening::finals:
      ++task.finals.again;
      break;
  }
  task.deepening.what = action.what;
  task.deepening.expected_share = action.share;
  task.deepening.best_before_us = task.search.best_us();
  return true;
}

void Agenda::finish_ended() const {
  if (std::ranges::any_of(tasks_, [](const auto& task) { return task->state.taken(); })) {
    return;
  }
  for (const auto& task : tasks_) {
    const bool spent = task->search.spent() && task->search.open() == 0;
    if (waits(*task) && keeps(*task) && spent && is_settled(*task)) {
      task->state.finish();
    }
  }
}

void Agenda::note_winner(SweepTask& task, const Config& winner) const {
  if (task.result.winner == winner) {
    return;
  }
  task.result.winner = winner;
  task.deepening.near_winner = {};
  for (const auto& other : tasks_) {
    if (&other->tunable == &task.tunable) {
      other->deepening.near_winner.none_left = false;
    }
  }
}

std::vector<FirstLook> Agenda::first_looks(std::optional<double> left_s) const {
  const std::vector<double> defaults_us = estimated_defaults_us();
  std::vector<FirstLook> looks;
  for (const Action& action : searches(left_s)) {
    const SweepTask& task = *action.task;
    if (task.unreached()) {
      const double configurations = task.search.remaining();
      looks.push_back({task.tunable.guessed_s({configurations, 1}).value_or(action.seconds),
                       model_calls(task.search.wanted()) * defaults_us[task.index]});
    }
  }
  return looks;
}

double Agenda::expected_s(const SweepTask& task) const {
  const std::vector<Outlook> all = outlooks();
  return next_search(all[task.index], attained_rates(all, rates_)).seconds;
}

bool Agenda::prefers_another(const SweepTask& present, std::optional<double> left_s) const {
  const std::vector<Action> others = actions(left_s);
  if (others.empty() || (left_s && others.front().least_s > *left_s)) {
    return false;
  }
  const std::vector<Outlook> all = outlooks();
  Outlook here = all[present.index];
  here.preparation_s = 0;
  SearchAction next = next_search(here, attained_rates(all, rates_));
  if (present.search.little_left()) {
    next.saved_us = std::min(next.saved_us, options_.search.min_gain * present.weight * here.time_us);
  }
  return others.front().rate() > next.rate();
}

bool Agenda::any_fresh() const {
  return std::ranges::any_of(tasks_, [](const auto& task) { return !task->state.taken() && task->fresh(); });
}

std::vector<double> Agenda::estimated_defaults_us() const {
  const DefaultTimes measured = default_times(tasks_, rates_);
  std::vector<double> estimated_us;
  for (const auto& task : tasks_) {
    estimated_us.push_back(bound_us(*task, rates_) * std::exp(measured.log_factor(&task->tunable)));
  }
  return estimated_us;
}

double Agenda::factor_of_estimates() const { return default_times(tasks_, rates_).factor_of_estimates(); }

std::vector<Outlook> Agenda::outlooks() const {
  const double build_s = builds_.mean_build_s();
  const Builder& builder = builds_.builder();
  const std::vector<double> defaults_us = estimated_defaults_us();
  DoublingRecord record;
  for (const auto& task : tasks_) {
    const ProblemSearch& search = task->search;
    if (search.done() > 1) {
      record.add(&task->tunable, search.best_after_us(1), search.best_after_us(kTrialsOfAction), search.best_us(),
                 search.done());
    }
  }
  std::vector<Outlook> out;
  for (const auto& task : tasks_) {
    const ProblemSearch& search = task->search;
    Outlook outlook{task->weight, search.bound().flops(), search.bound().bytes()};
    outlook.trials = search.done();
    outlook.measured = search.usable() > 0;
    outlook.time_us = search.usable() > 0 ? search.best_us() : task->costs.trials > 0 ? 0 : defaults_us[task->index];
    const double half_us = search.best_after_us((search.done() + 1) / 2);
    if (half_us > 0 && search.done() > 1) {
      outlook.last_doubling = std::max(0.0, 1 - search.best_us() / half_us);
    }
    outlook.usual_doubling = record.usual(&task->tunable, search.done());
    const double launch_s = 1e-6 * outlook.time_us;
    const double sampled_s = std::min(options_.measure.budget_ms / 1000, kSamplesExpected * launch_s);
    const double prepared_s = kPreparationSeconds + kPreparationSecondsPerByte * search.bound().bytes();
    const TaskCosts& costs = task->costs;
    outlook.trial_s = costs.trial_s().value_or(kTrialOverheadSeconds + std::max(sampled_s, kMinLaunches * launch_s));
    outlook.build_s = build_s / static_cast<double>(builder.workers());
    outlook.preparation_s = costs.preparation_s.value_or(prepared_s + kReferenceLaunches * launch_s);
    // An estimated launch may be several times too long, so it alone does not rule a task out.
    double least_preparation_s = costs.preparation_s.value_or(prepared_s);
    if (!task->look.had) {
      const double put_off_s = kPatienceAfterPutOff * task->look.put_off_s;
      outlook.preparation_s = std::max(outlook.preparation_s, put_off_s);
      least_preparation_s = std::max(least_preparation_s, put_off_s);
    }
    outlook.least_s = least_preparation_s + costs.trial_s().value_or(kTrialOverheadSeconds + sampled_s);
    const std::size_t own = std::min(builds_.pending(), search.open());
    outlook.ready = static_cast<int>(search.ready());
    outlook.wait_s = build_s + outlook.build_s * static_cast<double>(builds_.pending() - own);
    out.push_back(outlook);
  }
  return out;
}

}  // namespace pascaline
