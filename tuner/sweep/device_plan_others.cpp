#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/search/transfer.hpp"
#include "tuner/sweep/device_plan.hpp"
#include "tuner/sweep/other_devices.hpp"

// What a plan's searches begin with that other devices measured.
namespace pascaline {
namespace {

constexpr std::string_view kSearcherWithPriors = "auto";

bool has_all_values(const Space& space, const Config& config) {
  try {
    std::ignore = space.indices_of(config);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// A device's own trials of the shape, whatever their source and toolkit, make what others measured superfluous.
bool knows_enough(const SweepTask& task) {
  return std::any_of(task.kernel.measured.begin(), task.kernel.measured.end(), [&](const Store::Measured& key) {
    return key.problem_id == task.contexts.front().problem && key.times_us.size() >= kMinRelated;
  });
}

TakenOver& taken_over_entry_of(std::vector<TakenOver>& taken_over, const std::string& problem,
                               const std::string& device, const std::string& measured) {
  const auto found = std::find_if(taken_over.begin(), taken_over.end(), [&](const TakenOver& one) {
    return one.device == device && one.measured == measured;
  });
  return found != taken_over.end() ? *found : taken_over.emplace_back(TakenOver{problem, device, measured});
}

}  // namespace

void DevicePlan::recall_elsewhere(SweepRecorder& recorder, SweepTask& task) const {
  if (options_.searcher != kSearcherWithPriors || task.kernel.is_place || task.search.wanted().between) {
    return;
  }
  take_over_trials(recorder, task);
  take_over_winners(task);
}

void DevicePlan::take_over_trials(SweepRecorder& recorder, SweepTask& task) const {
  if (knows_enough(task)) {
    return;
  }
  const Problem& problem = task.search.wanted().problem;
  const Space& space = *task.kernel.space;
  for (const NearElsewhere& near :
       nearest_elsewhere(space, problem, device_row(info_), task.kernel.measured_elsewhere)) {
    if (task.elsewhere.size() == kMaxOtherDevices) {
      return;
    }
    RelatedProblem related{near.key->problem, {}, near.device_octaves};
    for (auto& [config, time_us] : recorder.persist([&](Store& store) { return store.times_us(*near.key); })) {
      Config here = task.kernel.compilers->with(config, 0);
      if (has_all_values(space, here)) {
        related.times_us.emplace_back(std::move(here), time_us);
      }
    }
    const std::size_t trials = related.times_us.size();
    if (trials < kMinRelated) {
      continue;
    }
    related.times_us = thinned_times(std::move(related.times_us));
    taken_over_entry_of(task.taken_over, problem.text(), near.key->device.name, near.key->problem.text()).trials +=
        static_cast<std::int64_t>(trials);
    task.elsewhere.push_back(std::move(related));
  }
}

void DevicePlan::take_over_winners(SweepTask& task) const {
  const std::string problem = task.search.wanted().problem.text();
  std::vector<Config> configs;
  std::vector<const Winner*> of;
  for (const Winner* winner : winners_elsewhere(problem, device_row(info_), task.kernel.winners_elsewhere)) {
    Config here = task.kernel.compilers->with(winner->trial.config, 0);
    if (!has_all_values(*task.kernel.space, here)) {
      continue;
    }
    const bool is_new = std::find(configs.begin(), configs.end(), here) == configs.end();
    if (is_new && configs.size() == kMaxOtherDevices) {
      continue;
    }
    if (is_new) {
      configs.push_back(std::move(here));
      of.push_back(winner);
    }
  }
  const std::vector<bool> first = task.search.begin_with_winners(configs);
  for (std::size_t i = 0; i < configs.size(); ++i) {
    if (first[i]) {
      taken_over_entry_of(task.taken_over, problem, of[i]->device.name, problem).winner = true;
    }
  }
}

std::vector<TakenOver> DevicePlan::taken_over() const {
  std::vector<TakenOver> all;
  for (const auto& task : tasks_) {
    all.insert(all.end(), task->taken_over.begin(), task->taken_over.end());
  }
  return all;
}

std::vector<std::string> DevicePlan::taken_over_lines() const {
  struct Sum {
    std::int64_t trials = 0;
    std::set<std::string> problems;
    int winners = 0;
  };
  std::map<std::string, Sum> sums;
  for (const TakenOver& one : taken_over()) {
    Sum& sum = sums[one.device];
    sum.trials += one.trials;
    sum.winners += one.winner ? 1 : 0;
    sum.problems.insert(one.problem);
  }
  std::vector<std::string> lines;
  for (const auto& [device, sum] : sums) {
    lines.push_back(fmt::format("the {} of {} of {} with what {} measured: {}, {} to be tried first",
                                sum.problems.size() == 1 ? "search" : "searches", sum.problems.size(),
                                counted(problems(), "problem") + (sum.problems.size() == 1 ? " begins" : " begin"),
                                device, counted(sum.trials, "trial"), counted(sum.winners, "winner")));
  }
  return lines;
}

}  // namespace pascaline
