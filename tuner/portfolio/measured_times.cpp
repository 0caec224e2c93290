#include "tuner/portfolio/measured_times.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "runtime/dispatch/closest_valid.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline {
namespace {

/// Trials of one kernel in one place.
struct TrialGroup {
  MeasuredTimes times;
  std::string source;  // the last one's
  std::size_t trials = 0;
  std::map<std::string, std::size_t> index;  // of `times.problems`, by text
};

using TrialGroupKey = std::tuple<std::string, std::string, std::string, std::string, std::int64_t, std::string>;

void add(TrialGroup& group, const StoredTrial& stored) {
  if (group.source != stored.kernel.source_hash) {
    group = TrialGroup{{stored.device, stored.toolkit, stored.kernel.name, {}}, stored.kernel.source_hash, 0, {}};
  }
  ++group.trials;
  const Trial& trial = stored.trial;
  const auto [at, is_new] = group.index.try_emplace(trial.problem.text(), group.times.problems.size());
  if (is_new) {
    group.times.problems.push_back({trial.problem, {}});
  }
  group.times.problems[at->second].trials.emplace_back(trial.config, trial.time ? trial.time->median_us : kUnknownTime);
}

bool belongs_to(const Space& space, const Config& config) {
  try {
    (void)space.indices_of(config);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Usable ones, the fastest first; of several trials of a configuration the last counts.
std::vector<std::pair<double, Config>> ranked(const MeasuredProblem& problem) {
  std::map<std::string, std::pair<double, Config>> last;
  for (const auto& [config, time_us] : problem.trials) {
    if (std::isfinite(time_us)) {
      last.insert_or_assign(config.text(), std::pair(time_us, config));
    }
  }
  std::vector<std::pair<double, Config>> out;
  for (auto& [text, entry] : last) {
    out.push_back(std::move(entry));
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

}  // namespace

double MeasuredProblem::best_us(std::size_t count) const {
  double best = kUnknownTime;
  for (std::size_t i = 0; i < std::min(count, trials.size()); ++i) {
    best = std::min(best, trials[i].second);
  }
  return best;
}

DeviceLimits MeasuredTimes::limits() const {
  const DeviceLimits card = stored_limits(device, DeviceLimits{});
  const auto target = limits_of_architecture(architecture_of_target(toolkit.target));
  return target ? tighter(card, *target) : card;
}

std::vector<MeasuredTimes> measured_times(const Store& store, const MeasuredTimesFilter& filter) {
  std::map<TrialGroupKey, TrialGroup> groups;
  TrialFilter trials;
  trials.kernel = filter.kernel;
  store.for_each_trial(trials, [&](const StoredTrial& stored) {
    const bool wanted = (filter.device.empty() || stored.device.name == filter.device) &&
                        (filter.target.empty() || stored.toolkit.target == filter.target) &&
                        stored.device.kind != "foreign" && stored.trial.stage == TrialStage::search;
    if (wanted) {
      add(groups[{stored.kernel.name, stored.device.kind, stored.device.name, stored.device.compute_capability,
                  stored.device.sm_count, describe(stored.toolkit)}],
          stored);
    }
  });
  std::vector<MeasuredTimes> out;
  std::size_t most = 0;
  for (auto& [key, group] : groups) {
    std::erase_if(group.times.problems,
                  [](const MeasuredProblem& problem) { return !std::isfinite(problem.best_us()); });
    if (group.times.problems.empty()) {
      continue;
    }
    if (out.empty() || out.back().kernel != group.times.kernel) {
      out.emplace_back();
      most = 0;
    }
    if (group.trials > most) {
      most = group.trials;
      out.back() = std::move(group.times);
    }
  }
  return out;
}

MeasuredMatrix matrix_of(const MeasuredTimes& measured, const Space& space, const std::vector<Config>& kept,
                         double near) {
  const DeviceLimits limits = measured.limits();
  MeasuredMatrix matrix;
  matrix.configs.push_back(space.default_config(limits));
  matrix.configs.insert(matrix.configs.end(), kept.begin(), kept.end());
  std::set<std::string> known;
  for (const Config& config : matrix.configs) {
    known.insert(config.text());
  }
  std::vector<std::map<std::string, double>> times;
  for (const MeasuredProblem& problem : measured.problems) {
    const auto order = ranked(problem);
    auto& row = times.emplace_back();
    for (const auto& [time_us, config] : order) {
      row.emplace(config.text(), time_us);
      if (time_us <= near * order.front().first && belongs_to(space, config) && known.insert(config.text()).second) {
        matrix.configs.push_back(config);
      }
    }
  }
  matrix.times.configs = matrix.configs.size();
  for (std::size_t i = 0; i < measured.problems.size(); ++i) {
    const BoundSpace bound(space, measured.problems[i].problem, limits);
    TimeMatrix::Row row;
    row.best_us = measured.problems[i].best_us();
    for (const Config& config : matrix.configs) {
      auto found = times[i].find(config.text());
      if (found == times[i].end() && bound.why_invalid(config)) {
        if (const auto nearest = nearest_valid(bound, config)) {
          found = times[i].find(nearest->text());
        }
      }
      row.time_us.push_back(found == times[i].end() ? kUnknownTime : found->second);
    }
    matrix.times.rows.push_back(std::move(row));
  }
  return matrix;
}

std::vector<Config> fastest_of_each(const MeasuredTimes& measured, const Space& space, std::size_t count) {
  std::set<std::string> known{space.default_config(measured.limits()).text()};
  std::vector<Config> out;
  for (const MeasuredProblem& problem : measured.problems) {
    std::size_t taken = 0;
    for (const auto& [time_us, config] : ranked(problem)) {
      if (taken == count) {
        break;
      }
      if (belongs_to(space, config)) {
        ++taken;
        if (known.insert(config.text()).second) {
          out.push_back(config);
        }
      }
    }
  }
  return out;
}

}  // namespace pascaline
