#include <algorithm>
#include <utility>

#include "tuner/sweep/device_scheduler.hpp"

// What a runner does because the sweep's time is limited.
namespace pascaline {
namespace {

constexpr double kShareOfFinals = 0.2;         // of the whole time, where that is enough for any finals
constexpr double kLargestShareOfFinals = 0.5;  // where it is not
constexpr double kShareOfTrial = 0.1;
constexpr double kEnergySeconds = 7;  // of winner and baseline
constexpr double kDecisionSeconds = 0.3;

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
double DeviceScheduler::least_finals_s() const {
  const std::string key = task_->search.finalists_key();
  if (key.empty() || key == task_->decided_on) {
    return 0;
  }
  const FinalsNeed need = finals_need();
  return finals_seconds(need, {1, need.fewest}) + kDecisionSeconds;
}

double DeviceScheduler::trial_s() const { return task_->search.done() > 0 ? task_->spent_s / task_->search.done() : 0; }

double DeviceScheduler::reserve_s(double limit_s) const {
  const double least_s = task_ != nullptr ? least_finals_s() : 0;
  if (!(least_s > 0)) {
    return 0;
  }
  const FinalsNeed need = finals_need();
  const double all_s = finals_seconds(need, {need.launch_s.size(), need.rounds}) + kDecisionSeconds +
                       (view_.power_w ? kEnergySeconds : 0);
  const double most_s = std::max(kShareOfFinals * limit_s, std::min(least_s, kLargestShareOfFinals * limit_s));
  return std::min(all_s, most_s) + std::min(trial_s(), kShareOfTrial * limit_s);
}

void DeviceScheduler::run_out(bool at_once) {
  if (task_ == nullptr || lane_.ended()) {
    return;
  }
  const bool measuring = view_.governor.empty() || view_.governor == name_of(GovernorState::measuring);
  if (at_once || !measuring || lane_.preparing()) {
    lane_.interrupt();
  }
  take_back();
  if (!quiet()) {
    return;
  }
  drop_finals();
  decide_without_finals();
  release_task(false);
}

// What finals have decided before is better founded, and stays.
void DeviceScheduler::decide_without_finals() {
  const ProblemSearch& search = task_->search;
  if (search.usable() == 0) {
    return;
  }
  const auto decided = recorder_.persist([&](Store& store) { return store.winner_stage(task_->context); });
  if (decided == TrialStage::finals) {
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
