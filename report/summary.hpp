#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/overview.hpp"
#include "db/store.hpp"
#include "report/document.hpp"
#include "report/report.hpp"

namespace pascaline {

/// What is known of one problem on one device under one toolkit with one kernel source.
struct ProblemSummary {
  Problem problem{};
  std::optional<TimeSummary> baseline;       ///< of the default configuration, or of what stands in for it
  std::optional<Store::StandIn> stand_in{};  ///< what does; nothing if it is the default
  std::optional<TimeSummary> best;
  Config config;                     ///< with the best time
  bool in_finals = false;            ///< both times are from finals, decided or not
  std::optional<double> confidence;  ///< set if and only if the winner was decided, and not decided again later
  bool provisional = false;          ///< decided by the search's trials, without finals
  double flops = 0;
  double bytes = 0;
};

/// Where a session's search trials spent their time on the device.
struct SessionTrialTimes {
  std::int64_t started_unix_ms = 0;
  TrialTimes times;
};

/// Everything measured on one device under one toolkit.
struct DeviceSummary {
  DeviceRow device;
  ToolkitRow toolkit;
  TrialCounts counts;
  std::array<std::size_t, kTrialStatuses> statuses{};  ///< of the trials
  std::int64_t first_unix_ms = 0;                      ///< start of the earliest trial
  std::int64_t last_unix_ms = 0;
  std::map<std::pair<TrialStatus, std::string>, std::size_t> failures;  ///< by status and reason
  /// By kernel name and source hash, then by problem.
  std::map<std::pair<std::string, std::string>, std::map<std::string, ProblemSummary>> kernels;
  std::map<std::string, std::string> current_sources;  ///< of each kernel, the source hash of the latest trial
  std::int64_t spent_ms = 0;                           ///< over all sessions on the device with the toolkit
  std::size_t sessions = 0;
  std::size_t running_sessions = 0;  ///< of them, those whose process is at work now
  std::set<std::string> searchers;   ///< of those sessions
  /// Where the time of the search's trials went, of the sessions of which that is known, all their kernels; the oldest
  /// first.
  std::vector<SessionTrialTimes> trial_times;
};

/// From one time to another. The interval is what the two 95 % intervals allow at most: wider than one of the ratio
/// itself. Nothing where a time is missing, `to` is not above zero, or a ratio is not finite.
[[nodiscard]] std::optional<ReportSpeedup> speedup_between(const std::optional<TimeSummary>& from,
                                                           const std::optional<TimeSummary>& to);

/// The one mean of speedups that is told: the geometric one; nothing of none, or if it is not finite. A model's speedup
/// is not a mean: it is the ratio of two sums of times.
[[nodiscard]] std::optional<double> mean_speedup(const std::vector<double>& speedups);

[[nodiscard]] SpeedupSummary summarize_speedups(const DeviceSummary& group);
[[nodiscard]] SpeedupSummary summarize_speedups(const ReportContext& context);

/// The reason of a failure, and that it was one of the finals, which are counted apart from trials.
[[nodiscard]] std::string failure_text(TrialStage stage, const std::string& reason);

/// Whether the options let it through.
[[nodiscard]] bool is_wanted(const ReportOptions& options, const DeviceRow& device);
[[nodiscard]] bool is_wanted(const ReportOptions& options, std::int64_t session_id);

/// Reads the database; devices and toolkits in the order of their first trial.
[[nodiscard]] std::vector<DeviceSummary> summarize_trials(const Store& store, const ReportOptions& options);

}  // namespace pascaline
