#include "report/summary.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace pascaline {
namespace {

DeviceSummary& group_of(std::vector<DeviceSummary>& groups, const DeviceRow& device, const ToolkitRow& toolkit) {
  const auto at = std::find_if(groups.begin(), groups.end(), [&](const DeviceSummary& group) {
    return same_identity(group.device, device) && group.toolkit == toolkit;
  });
  if (at != groups.end()) {
    return *at;
  }
  DeviceSummary& group = groups.emplace_back();
  group.device = device;
  group.toolkit = toolkit;
  return group;
}

void count_trial(DeviceSummary& group, const Trial& trial) {
  group.counts.add(trial);
  group.statuses[static_cast<std::size_t>(trial.status)] += trial.stage == TrialStage::search ? 1 : 0;
  if (trial.started_unix_ms > 0) {  // another tuner may not tell when
    const bool first = group.first_unix_ms == 0;
    group.first_unix_ms = first ? trial.started_unix_ms : std::min(group.first_unix_ms, trial.started_unix_ms);
  }
  group.last_unix_ms = std::max(group.last_unix_ms, trial.started_unix_ms);
  if (!has_time(trial.status)) {
    ++group.failures[{trial.status, failure_text(trial.stage, trial.reason)}];
  }
}

// Until finals decide, the fastest trial stands for the winner and the latest default for its baseline. Times of finals
// go before those of the search, with which they cannot be compared.
void note_time(ProblemSummary& problem, const Trial& trial) {
  const bool in_finals = trial.stage == TrialStage::finals;
  if (!trial.time || (problem.in_finals && !in_finals)) {
    return;
  }
  if (in_finals && !problem.in_finals) {
    problem.in_finals = true;
    problem.baseline.reset();
    problem.best.reset();
  }
  if (trial.is_default) {
    problem.baseline = trial.time;
  }
  if (!problem.best || trial.time->median_us < problem.best->median_us) {
    problem.best = trial.time;
    problem.config = trial.config;
  }
}

void note_winner(const Store& store, ProblemSummary& problem, const Winner& winner) {
  problem.best = winner.trial.time;
  problem.config = winner.trial.config;
  problem.confidence = winner.confidence;
  problem.provisional = winner.trial.stage == TrialStage::search;
  problem.baseline = winner.baseline;
  problem.stand_in = winner.baseline ? store.stand_in_of(winner.trial_id) : std::nullopt;
}

// `with_trials`: sessions that have trials of the kernels asked for.
void note_sessions(const Store& store, std::vector<DeviceSummary>& groups, const ReportOptions& options,
                   const std::unordered_set<std::int64_t>& with_trials) {
  std::unordered_map<std::int64_t, TrialTimes> times;
  for (const TrialTimes& of_session : store.trial_times()) {
    times.emplace(of_session.session, of_session);
  }
  for (const SessionRow& session : store.sessions()) {
    const auto at = std::find_if(groups.begin(), groups.end(), [&](const DeviceSummary& group) {
      return same_identity(group.device, session.device) && group.toolkit == session.toolkit;
    });
    if (at == groups.end() || !is_wanted(options, session.id)) {  // the first: no trial came of it
      continue;
    }
    at->spent_ms += session.spent_ms;
    ++at->sessions;
    at->running_sessions += session.alive ? 1 : 0;
    at->searchers.insert(session.searcher);
    const auto known = times.find(session.id);
    if (known != times.end() && with_trials.contains(session.id)) {
      at->trial_times.push_back({session.started_unix_ms, known->second});
    }
  }
  for (DeviceSummary& group : groups) {
    std::stable_sort(
        group.trial_times.begin(), group.trial_times.end(), [](const SessionTrialTimes& a, const SessionTrialTimes& b) {
          return std::pair(a.started_unix_ms, a.times.session) < std::pair(b.started_unix_ms, b.times.session);
        });
  }
}

void note_work(const Store& store, std::vector<DeviceSummary>& groups) {
  for (DeviceSummary& group : groups) {
    for (auto& [kernel, problems] : group.kernels) {
      for (auto& [text, problem] : problems) {
        std::tie(problem.flops, problem.bytes) = store.work(text).value_or(std::pair(0.0, 0.0));
      }
    }
  }
}

}  // namespace

std::string failure_text(TrialStage stage, const std::string& reason) {
  return stage == TrialStage::finals ? "in the finals: " + reason : reason;
}

bool is_wanted(const ReportOptions& options, const DeviceRow& device) {
  return options.device.empty() || options.device == device.name;
}

bool is_wanted(const ReportOptions& options, std::int64_t session_id) {
  const auto& sessions = options.sessions;
  return sessions.empty() || std::find(sessions.begin(), sessions.end(), session_id) != sessions.end();
}

std::optional<ReportSpeedup> speedup_between(const std::optional<TimeSummary>& from,
                                             const std::optional<TimeSummary>& to) {
  if (!from || !to || !(to->median_us > 0) || !(to->low_us > 0) || !(to->high_us > 0)) {
    return std::nullopt;
  }
  const ReportSpeedup speedup{from->median_us / to->median_us, from->low_us / to->high_us, from->high_us / to->low_us};
  const bool finite = std::isfinite(speedup.value) && std::isfinite(speedup.low) && std::isfinite(speedup.high);
  return finite ? std::optional(speedup) : std::nullopt;
}

std::optional<double> mean_speedup(const std::vector<double>& speedups) {
  double sum_of_logs = 0;
  for (const double speedup : speedups) {
    sum_of_logs += std::log(speedup);
  }
  const double mean = std::exp(sum_of_logs / static_cast<double>(speedups.size()));
  return !speedups.empty() && std::isfinite(mean) ? std::optional(mean) : std::nullopt;
}

SpeedupSummary summarize_speedups(const DeviceSummary& group) {
  SpeedupSummary summary;
  std::vector<double> speedups;
  for (const auto& [kernel, problems] : group.kernels) {
    if (group.current_sources.at(kernel.first) != kernel.second) {
      continue;
    }
    summary.problems += problems.size();
    for (const auto& [text, problem] : problems) {
      summary.decided += problem.confidence ? 1 : 0;
      if (const auto speedup = speedup_between(problem.baseline, problem.best); problem.confidence && speedup) {
        speedups.push_back(speedup->value);
      }
    }
  }
  summary.speedup = mean_speedup(speedups);
  return summary;
}

SpeedupSummary summarize_speedups(const ReportContext& context) {
  SpeedupSummary summary;
  std::vector<double> speedups;
  for (const ReportKernel& kernel : context.kernels) {
    if (!kernel.current) {
      continue;
    }
    summary.problems += kernel.problems.size();
    for (const ReportProblem& problem : kernel.problems) {
      summary.decided += problem.decided ? 1 : 0;
      if (problem.decided && problem.speedup) {
        speedups.push_back(problem.speedup->value);
      }
    }
  }
  summary.speedup = mean_speedup(speedups);
  return summary;
}

std::vector<DeviceSummary> summarize_trials(const Store& store, const ReportOptions& options) {
  std::vector<DeviceSummary> groups;
  std::unordered_set<std::int64_t> wanted_trials;
  std::unordered_set<std::int64_t> sessions_with_trials;
  const auto problem_in = [](DeviceSummary& group, const KernelRow& kernel, const Problem& problem) -> ProblemSummary& {
    ProblemSummary& summary = group.kernels[{kernel.name, kernel.source_hash}][problem.text()];
    summary.problem = problem;
    return summary;
  };
  TrialFilter filter;
  filter.kernel = options.kernel;
  store.for_each_trial(filter, [&](const StoredTrial& stored) {
    if (!is_wanted(options, stored.device) || !is_wanted(options, stored.session_id)) {
      return;
    }
    sessions_with_trials.insert(stored.session_id);
    DeviceSummary& group = group_of(groups, stored.device, stored.toolkit);
    count_trial(group, stored.trial);
    group.current_sources[stored.kernel.name] = stored.kernel.source_hash;
    note_time(problem_in(group, stored.kernel, stored.trial.problem), stored.trial);
    if (has_time(stored.trial.status)) {
      wanted_trials.insert(stored.id);
    }
  });
  for (const Winner& winner : store.winners(options.kernel, nullptr)) {
    if (wanted_trials.contains(winner.trial_id)) {
      note_winner(store,
                  problem_in(group_of(groups, winner.device, winner.toolkit), winner.kernel, winner.trial.problem),
                  winner);
    }
  }
  note_sessions(store, groups, options, sessions_with_trials);
  note_work(store, groups);
  return groups;
}

}  // namespace pascaline
