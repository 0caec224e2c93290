#include "tuner/sweep/finals_turn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "tuner/measure/trial_setup.hpp"

namespace pascaline {

FinalsTurn::FinalsTurn(DevicePlan& plan, SweepRecorder& recorder, const SweepOptions& options, Lab& lab,
                       const DeviceStatus& status)
    : plan_(plan),
      recorder_(recorder),
      lab_(lab),
      status_(status),
      budget_(options, status),
      decider_(recorder, options, plan.agenda(), budget_, status.device()) {}

std::optional<FinalsTurn::End> FinalsTurn::begin(SweepTask& task, bool last, bool shared,
                                                 std::optional<double> allowed_s) {
  last_ = last;
  limits_ = {shared, false};
  allowed_s_ = allowed_s;
  if (task.lacks_alternatives()) {
    task.look.no_time = WinnerDecider::kNotAllWays;
    return End{last};
  }
  const std::string key = task.search.finalists_key();
  const bool again = only_compares(task.deepening.what);
  // Neighbours of winners are compared with them only where one is faster.
  const bool none_faster =
      task.deepening.what == Deepening::neighbours && !(task.search.best_us() < task.deepening.best_before_us);
  if (key.empty() || (key == task.finals.decided_on && !again) || none_faster) {
    task.finals.decided_on = none_faster ? key : task.finals.decided_on;
    return End{last};
  }
  task.finals.begun = true;
  task.finals.decided_on = key;
  decider_.recall_standing(task);
  task.state.gather();
  plan_.gather_finalists(task);
  return std::nullopt;
}

// Takes rounds, and then finalists, away until the rest fits the time; false if nothing does.
bool FinalsTurn::fit_in_time(const SweepTask& task, FinalsJob& job, std::size_t& most, std::optional<double> left_s) {
  if (!allowed_s_) {
    return true;
  }
  const double allowed_s = std::min(*allowed_s_, left_s.value_or(*allowed_s_)) - FinalsBudget::kAnswerSeconds;
  const auto fit = budget_.fit(task, allowed_s);
  if (!fit) {
    return false;
  }
  const FinalsNeed need = budget_.need(task);
  limits_.cut = fit->finalists < need.launch_s.size() || fit->rounds < std::min(need.rounds, need.fewest_wanted);
  job.allowed_s = allowed_s;
  job.options.rounds = fit->rounds;
  most = fit->finalists;
  return true;
}

std::optional<FinalsTurn::End> FinalsTurn::send(SweepTask& task, std::optional<double> left_s) {
  FinalsJob job;
  job.id = next_job_++;
  job.options = decider_.with_what_to_compare(task, budget_.options(task));
  job.best_us = task.search.best_us();
  job.allowed_s = allowed_s_;
  const std::optional<Config> baseline = task.search.baseline();
  const std::vector<Config> wanted_finalists = task.wanted_finalists(budget_.by_time_alone());
  std::size_t most = wanted_finalists.size();
  if (!fit_in_time(task, job, most, left_s)) {
    decider_.decide_without_finals(task);
    return for_later(task);
  }
  if (job.options.standing && job.options.standing->config != job.options.stand_in) {
    most = std::max<std::size_t>(most, 2);  // a standing winner is replaced only after a comparison with it
  }
  for (const Config& config : wanted_finalists) {
    const auto binary = task.finals.binaries.find(config.text());
    const bool wanted = job.finalists.size() < most || config == baseline;
    if (wanted && binary != task.finals.binaries.end() && binary->second) {
      Trial blank = blank_trial(task.search.bound(), config, *binary->second);
      blank.stage = TrialStage::finals;
      recorder_.begin_attempt(task, config, TrialStage::finals);
      on_device_.push_back(config);
      job.finalists.emplace_back(std::move(blank), std::move(*binary->second));
    }
  }
  task.finals.binaries.clear();
  if (job.finalists.empty()) {
    return End{last_};
  }
  task.state.compare();
  lab_.submit(std::move(job));
  return std::nullopt;
}

void FinalsTurn::end_attempts(const SweepTask& task) {
  for (const Config& config : on_device_) {
    recorder_.end_attempt(task, config);
  }
  on_device_.clear();
}

void FinalsTurn::drop(SweepTask& task) {
  end_attempts(task);
  task.finals.decided_on.clear();
}

// Puts off finals that had too little time, as more may be left once all problems had their first look. Otherwise they
// are not tried again.
FinalsTurn::End FinalsTurn::for_later(SweepTask& task) const {
  const bool over = last_ && !limits_.shared;
  if (!over) {
    task.finals.decided_on.clear();
    task.look.finals_put_off = task.look.finals_put_off || last_;
  }
  return {over};
}

std::optional<FinalsTurn::End> FinalsTurn::take(SweepTask& task, const FinalsDone& done) {
  end_attempts(task);
  if (!done.result) {
    return End{last_};
  }
  const FinalsResult& result = *done.result;
  for (const Trial& failed : result.failed) {
    take_failed(task, FinalistFailed{failed});
  }
  if (result.out_of_time) {
    decider_.decide_without_finals(task);
    return for_later(task);
  }
  std::vector<std::int64_t> ids;
  for (const Trial& trial : result.trials) {
    ids.push_back(recorder_.add_trial(task, trial));
  }
  decider_.announce(task, result, ids, limits_);
  // What they were to be compared with failed; another one takes its place.
  if (!result.baseline && task.search.baseline()) {
    return begin(task, last_, limits_.shared, allowed_s_);
  }
  const bool objective_later = result.by_objective && result.by_objective->out_of_time;
  return (limits_.cut || objective_later) && limits_.shared ? for_later(task) : End{last_};
}

void FinalsTurn::take_failed(SweepTask& task, const FinalistFailed& failed) {
  recorder_.note(fmt::format("{}: a finalist failed: {}: {} ({})", status_.device(), name_of(failed.trial.status),
                             failed.trial.reason, failed.trial.config.text()));
  std::ignore = recorder_.add_trial(task, failed.trial);
  std::erase(on_device_, failed.trial.config);
  task.search.discard(failed.trial.config);
}

}  // namespace pascaline
