#include "report/summary.hpp"

#include <algorithm>

namespace pascaline {
namespace {

bool same_identity(const DeviceRow& a, const DeviceRow& b) {
  return a.kind == b.kind && a.name == b.name && a.compute_capability == b.compute_capability &&
         a.sm_count == b.sm_count;
}

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
  ++group.counts[static_cast<std::size_t>(trial.status)];
  if (trial.started_unix_ms > 0) {  // another tuner may not tell when
    const bool first = group.first_unix_ms == 0;
    group.first_unix_ms = first ? trial.started_unix_ms : std::min(group.first_unix_ms, trial.started_unix_ms);
  }
  group.last_unix_ms = std::max(group.last_unix_ms, trial.started_unix_ms);
  if (trial.status != TrialStatus::ok) {
    ++group.failures[{trial.status, trial.reason}];
  }
}

// Until finals decide, the fastest trial stands for the winner and the latest default for its baseline.
void note_time(ProblemSummary& problem, const Trial& trial) {
  if (!trial.time) {
    return;
  }
  if (trial.is_default) {
    problem.baseline = trial.time;
  }
  if (!problem.best || trial.time->median_us < problem.best->median_us) {
    problem.best = trial.time;
    problem.config = trial.config;
  }
}

void note_winner(ProblemSummary& problem, const Winner& winner) {
  problem.best = winner.trial.time;
  problem.config = winner.trial.config;
  problem.confidence = winner.confidence;
  problem.baseline = winner.baseline;
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

bool is_wanted(const ReportOptions& options, const DeviceRow& device) {
  return options.device.empty() || options.device == device.name;
}

std::vector<DeviceSummary> summarize_trials(const Store& store, const ReportOptions& options) {
  std::vector<DeviceSummary> groups;
  const auto problem_of = [&](const DeviceRow& device, const ToolkitRow& toolkit, const KernelRow& kernel,
                              const Problem& problem) -> ProblemSummary& {
    DeviceSummary& group = group_of(groups, device, toolkit);
    return group.kernels[{kernel.name, kernel.source_hash}][problem.text()];
  };
  TrialFilter filter;
  filter.kernel = options.kernel;
  store.for_each_trial(filter, [&](const StoredTrial& stored) {
    if (is_wanted(options, stored.device)) {
      count_trial(group_of(groups, stored.device, stored.toolkit), stored.trial);
      note_time(problem_of(stored.device, stored.toolkit, stored.kernel, stored.trial.problem), stored.trial);
    }
  });
  for (const Winner& winner : store.winners(options.kernel, nullptr)) {
    if (is_wanted(options, winner.device)) {
      note_winner(problem_of(winner.device, winner.toolkit, winner.kernel, winner.trial.problem), winner);
    }
  }
  note_work(store, groups);
  return groups;
}

}  // namespace pascaline
