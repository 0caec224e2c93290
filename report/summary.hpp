#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/store.hpp"
#include "report/document.hpp"
#include "report/report.hpp"

namespace pascaline {

/// What is known of one problem on one device under one toolkit with one kernel source.
struct ProblemSummary {
  std::optional<TimeSummary> baseline;  ///< of the default configuration
  std::optional<TimeSummary> best;
  Config config;                     ///< with the best time
  std::optional<double> confidence;  ///< set if and only if the winner was decided in finals
  double flops = 0;
  double bytes = 0;
};

/// Everything measured on one device under one toolkit.
struct DeviceSummary {
  DeviceRow device;
  ToolkitRow toolkit;
  std::array<std::size_t, kStatusCount> counts{};  ///< trials by status
  std::int64_t first_unix_ms = 0;                  ///< start of the earliest trial
  std::int64_t last_unix_ms = 0;
  std::map<std::pair<TrialStatus, std::string>, std::size_t> failures;  ///< by status and reason
  /// By kernel name and source hash, then by problem.
  std::map<std::pair<std::string, std::string>, std::map<std::string, ProblemSummary>> kernels;
};

/// Whether the options let it through.
[[nodiscard]] bool is_wanted(const ReportOptions& options, const DeviceRow& device);

/// Reads the database; devices and toolkits in the order of their first trial.
[[nodiscard]] std::vector<DeviceSummary> summarize_trials(const Store& store, const ReportOptions& options);

}  // namespace pascaline
