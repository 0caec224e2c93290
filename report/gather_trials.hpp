#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "db/overview.hpp"
#include "db/store.hpp"
#include "report/config_table.hpp"
#include "report/document.hpp"
#include "report/report.hpp"

namespace pascaline {

/// What is kept of each trial while a report is made.
struct TrialPoint {
  std::int64_t id = 0;
  std::int64_t session = 0;
  double median_us = 0;  ///< 0 without a time
  std::int64_t started_unix_ms = 0;
  std::int64_t ended_unix_ms = 0;
  TrialStatus status = TrialStatus::ok;
  TrialStage stage = TrialStage::search;
  bool is_default = false;
};

/// The trials of one problem on one device under one toolkit with one source of the kernel.
struct GatheredProblem {
  ContextIds ids;  ///< the space is that of its latest trial
  ContextRows rows;
  std::size_t context = 0;         ///< index in GatheredTrials::contexts
  std::vector<TrialPoint> trials;  ///< in the order they were stored, the finals' measurements among them
  TrialCounts counts;
  ConfigTable configs;                  ///< of the trials, in their order
  std::optional<TimeSummary> baseline;  ///< of the latest default
  std::optional<TimeSummary> fastest;
  std::size_t fastest_trial = 0;  ///< index
  std::optional<Winner> winner;
  std::size_t winner_trial = 0;            ///< index
  std::optional<Store::StandIn> stand_in;  ///< what the winner was compared with, if not with the default
};

/// Failures of one kind, and the first of them.
struct GatheredFailure {
  std::size_t count = 0;
  std::vector<std::string> kernels;
  std::string problem;
  std::string config;
};

/// One device under one toolkit.
struct GatheredContext {
  DeviceRow device;
  ToolkitRow toolkit;
  bool wanted = true;
  std::int64_t first_unix_ms = 0;
  std::int64_t last_unix_ms = 0;
  TrialCounts counts;
  std::array<std::size_t, kTrialStatuses> statuses{};  ///< of the trials
  std::map<std::pair<TrialStatus, std::string>, GatheredFailure> failures;
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> latest;  ///< trial and kernel id of a kernel's latest
};

/// When a trial ran, for what is known by trial only.
struct TrialMoment {
  std::int64_t id = 0;
  std::int64_t session = 0;
  std::int64_t started_unix_ms = 0;
  std::int64_t ended_unix_ms = 0;
};

/// All trials that a report is about, from one pass over the database.
struct GatheredTrials {
  std::vector<GatheredContext> contexts;                             ///< in the order of their first trials
  std::vector<GatheredProblem> problems;                             ///< likewise
  std::vector<TrialMoment> moments;                                  ///< by id
  std::unordered_map<std::int64_t, std::size_t> context_of_session;  ///< that of its first trial
  std::unordered_map<std::int64_t, TrialCounts> counts_of_session;
};

/// Reads the trials of the kernel and device that the options name, and the winners among them.
[[nodiscard]] GatheredTrials gather_trials(const Store& store, const ReportOptions& options);

}  // namespace pascaline
