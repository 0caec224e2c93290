#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tuner/measure/trial_setup.hpp"
#include "tuner/sweep/device_scheduler.hpp"

// The finals of a task: what is compared, and in how much time.
namespace pascaline {
namespace {

constexpr double kShareOfFinals = 0.2;         // of the whole time, where that is enough for any finals
constexpr double kLargestShareOfFinals = 0.5;  // where it is not
constexpr double kEnergySeconds = 7;           // of winner and baseline, at most
constexpr double kDecisionSeconds = 0.3;
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
  need.fewest = std::min(kMinFinalsRounds, finals.rounds);
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

// Where finals of this run have measured them, they are mostly not measured again.
double DeviceScheduler::energies_s() const {
  return status_.tells_power() && takes_energies() && !task_->energies ? kEnergySeconds : 0;
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
                       std::max(energies_s(), objective_s());
  const double most_s = std::max(kShareOfFinals * limit_s, std::min(least_s, kLargestShareOfFinals * limit_s));
  return std::min(all_s, most_s);
}

void DeviceScheduler::begin_finals(bool last, std::optional<double> allowed_s) {
  finals_.last = last;
  finals_.cut = false;
  finals_.allowed_s = allowed_s;
  const std::string key = task_->search.finalists_key();
  const bool again = task_->deepening == Deepening::finals || task_->deepening == Deepening::comparison;
  // Neighbours of winners are compared with them only where one is faster.
  const bool none_faster =
      task_->deepening == Deepening::neighbours && !(task_->search.best_us() < task_->best_before_us);
  if (task_->lacks_alternatives()) {
    task_->no_time = kNotAllWays;
    leave_preparing();
    release_task(last);
    return;
  }
  if (key.empty() || (key == task_->decided_on && !again) || none_faster) {
    task_->decided_on = none_faster ? key : task_->decided_on;
    leave_preparing();
    release_task(last);
    return;
  }
  task_->compared = true;
  task_->decided_on = key;
  recorder_.persist([&](Store& store) { recall_standing(store); });
  task_->state.gather();
  plan_.gather_finalists(*task_);
  send_finals();
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
  lab_->submit(std::move(job));
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

}  // namespace pascaline
