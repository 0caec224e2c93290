#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tuner/measure/trial_setup.hpp"
#include "tuner/sweep/device_scheduler.hpp"

// The finals of a task: what is compared, in how much time, and what is decided.
namespace pascaline {
namespace {

constexpr double kShareOfFinals = 0.2;         // of the whole time, where that is enough for any finals
constexpr double kLargestShareOfFinals = 0.5;  // where it is not
constexpr double kEnergySeconds = 7;           // of winner and baseline
constexpr double kDecisionSeconds = 0.3;
constexpr double kAnswerSeconds = 0.3;  // from the worker's last launch to its decision in the database

}  // namespace

FinalsNeed DeviceScheduler::finals_need() const {
  const ProblemSearch& search = task_->search;
  const std::optional<Config> baseline = search.baseline();
  FinalsNeed need;
  for (const Config& config : search.finalist_configs()) {
    if (config == baseline) {
      need.baseline_s = search.launch_s(config);
    } else {
      need.launch_s.push_back(search.launch_s(config));
    }
  }
  need.rounds = options_.finals.rounds;
  need.fewest_wanted = options_.finals.min_rounds;
  need.fewest = std::min(kFewestFinalsRounds, options_.finals.rounds);
  need.launches = options_.finals.launches;
  return need;
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
                       (status_.tells_power() ? kEnergySeconds : 0);
  const double most_s = std::max(kShareOfFinals * limit_s, std::min(least_s, kLargestShareOfFinals * limit_s));
  return std::min(all_s, most_s);
}

void DeviceScheduler::begin_finals(bool last, std::optional<double> allowed_s) {
  finals_.last = last;
  finals_.cut = false;
  finals_.allowed_s = allowed_s;
  const std::string key = task_->search.finalists_key();
  if (key.empty() || key == task_->decided_on) {
    leave_preparing();
    release_task(last);
    return;
  }
  task_->decided_on = key;
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
  const auto fit = fit_finals(need, allowed_s);
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
  job.options = options_.finals;
  job.best_us = task_->search.best_us();
  job.allowed_s = finals_.allowed_s;
  const std::optional<Config> baseline = task_->search.baseline();
  job.options.stand_in = baseline ? baseline->text() : "";
  std::size_t most = task_->search.finalist_configs().size();
  if (!fit_in_time(job, most)) {
    decide_without_finals();
    release_for_later();
    return;
  }
  for (const Config& config : task_->search.finalist_configs()) {
    const auto binary = task_->finalists.find(config.text());
    const bool wanted = job.finalists.size() < most || config == baseline;
    if (wanted && binary != task_->finalists.end() && binary->second) {
      Trial blank = blank_trial(task_->search.bound(), config, *binary->second);
      blank.stage = TrialStage::finals;
      recorder_.persist([&](Store& store) {
        store.begin_attempt(session_, task_->context, config, TrialStage::finals, blank.is_default);
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

void DeviceScheduler::drop_finals() {
  recorder_.persist([&](Store& store) {
    for (const Config& config : finals_.on_device) {
      store.end_attempt(session_, task_->context, config);
    }
  });
  finals_.on_device.clear();
  task_->decided_on.clear();
}

// Finals for which there was too little time: with what is left when all problems were looked at there may be more.
void DeviceScheduler::release_for_later() {
  task_->decided_on.clear();
  release_task(finals_.last && !finals_.shared);
}

void DeviceScheduler::on_finals(const FinalsDone& done) {
  recorder_.persist([&](Store& store) {
    for (const Config& config : finals_.on_device) {
      store.end_attempt(session_, task_->context, config);
    }
  });
  finals_.on_device.clear();
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
    std::int64_t winner = 0;
    for (std::size_t i = 0; i < done.result->trials.size(); ++i) {
      const Trial& trial = done.result->trials[i];
      const std::int64_t id =
          recorder_.persist([&](Store& store) { return store.add_trial(session_, task_->context, trial); });
      winner = i == done.result->winner ? id : winner;
    }
    announce(*done.result, winner);
    // What they were to be compared with failed; another one takes its place.
    if (!done.result->baseline && task_->search.baseline()) {
      begin_finals(finals_.last, finals_.allowed_s);
      return;
    }
  }
  if (finals_.cut && finals_.shared) {
    release_for_later();
  } else {
    release_task(finals_.last);
  }
}

void DeviceScheduler::on_finalist_failed(const FinalistFailed& failed) {
  recorder_.note(fmt::format("{}: a finalist failed: {}: {} ({})", status_.device(), name_of(failed.trial.status),
                             failed.trial.reason, failed.trial.config.text()));
  recorder_.persist([&](Store& store) { store.add_trial(session_, task_->context, failed.trial); });
  std::erase(finals_.on_device, failed.trial.config);
  task_->search.discard(failed.trial.config);
}

void DeviceScheduler::announce(const FinalsResult& result, std::int64_t winner) {
  recorder_.persist(
      [&](Store& store) { store.set_winner(task_->context, winner, result.baseline, result.confidence); });
  if (!task_->decided) {
    task_->decided = true;
    ++recorder_.summary().problems_done;
  }
  if (recorder_.events().winner) {
    FinalsResult told = result;
    told.baseline_why = result.baseline ? task_->search.why_no_default() : "";
    recorder_.events().winner(status_.device(), task_->search.wanted(), told, task_->search.done());
  }
}

// What finals have decided before is better founded, and stays.
void DeviceScheduler::decide_without_finals() {
  const ProblemSearch& search = task_->search;
  if (search.usable() == 0) {
    return;
  }
  const auto decided = recorder_.persist([&](Store& store) { return store.decision(task_->context); });
  if (decided && decided->stage == TrialStage::finals) {
    return;
  }
  const std::optional<Config> baseline = search.baseline();
  std::vector<std::int64_t> ids{search.trial_of(search.best())};
  if (baseline && *baseline != search.best()) {
    ids.push_back(search.trial_of(*baseline));
  }
  std::vector<Trial> trials;
  for (const std::int64_t id : ids) {
    TrialFilter filter;
    filter.trial_id = id;
    std::vector<StoredTrial> stored = recorder_.persist([&](Store& store) { return store.trials(filter); });
    if (stored.size() != 1 || !stored.front().trial.time) {
      return;  // shared with what the machine went down on, or gone: there is nothing to decide by
    }
    trials.push_back(std::move(stored.front().trial));
  }
  const FinalsResult result =
      decide_from_search(std::move(trials), baseline ? std::optional(ids.size() - 1) : std::nullopt, search.usable());
  announce(result, ids[result.winner]);
}

}  // namespace pascaline
