#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/trial_counts.hpp"
#include "db/store.hpp"

namespace pascaline {

/// What an overview of many trials needs of each.
struct TrialBrief {
  std::int64_t id = 0;
  std::int64_t session = 0;
  ContextIds context;
  TrialStatus status = TrialStatus::ok;
  TrialStage stage = TrialStage::search;
  bool is_default = false;
  std::optional<TimeSummary> time;
  double verify_ms = 0;
  double measure_ms = 0;
  std::int64_t started_unix_ms = 0;
  std::string config_json;  ///< what Config::json() wrote
  std::string reason;
  bool is_duplicate = false;  ///< it shares another trial's result
};

/// The rows that ContextIds stand for.
struct ContextRows {
  DeviceRow device;
  ToolkitRow toolkit;
  KernelRow kernel;
  std::string space_json;
  Problem problem;
  double flops = 0;
  double bytes = 0;
};

/// Trials of a session with one version of a kernel.
struct VersionTrials {
  std::int64_t session = 0;
  KernelRow kernel;
  std::string space_hash;
  TrialCounts counts{};
};

/// Of each session that has trials, by its id.
[[nodiscard]] std::map<std::int64_t, TrialCounts> counts_by_session(const Store& store);

/// Number of values of SampleMark.
inline constexpr std::size_t kSampleMarks = 5;

/// Samples of a trial.
struct SampleCounts {
  std::int64_t trial_id = 0;
  std::size_t total = 0;
  std::array<std::size_t, kSampleMarks> marked{};  ///< by SampleMark; those that count are at `none`
};

/// Where the time of a session's search trials went on its device, in milliseconds added up. Trials that share
/// another's result or never reached the device have taken none, and of another tuner's results the parts are not
/// known: none of these are counted here.
struct TrialTimes {
  std::int64_t session = 0;
  std::int64_t trials = 0;
  std::int64_t dropped = 0;  ///< of them by racing
  double load_ms = 0;        ///< bringing code to the device
  double inputs_ms = 0;      ///< drawing inputs and computing what results must be
  double check_ms = 0;       ///< the launch that is checked, and comparing its results
  double warm_up_ms = 0;     ///< launches before the first sample
  double evict_ms = 0;       ///< evicting caches before samples
  double sample_ms = 0;      ///< launches that are timed
  double wait_ms = 0;        ///< until the card was fit to be measured on
  double other_ms = 0;       ///< reading sensors, the canary
};

/// Calls `visit(name, milliseconds)` for each part, in the order of a trial; names are "load", "inputs" and so on.
template <typename Times, typename Visit>
void for_each_part(Times& times, Visit&& visit) {
  visit("load", times.load_ms);
  visit("inputs", times.inputs_ms);
  visit("check", times.check_ms);
  visit("warm up", times.warm_up_ms);
  visit("evict", times.evict_ms);
  visit("sample", times.sample_ms);
  visit("wait", times.wait_ms);
  visit("other", times.other_ms);
}

/// All parts added up.
[[nodiscard]] double total_ms(const TrialTimes& times);
/// Adds the trials, those that were dropped and the parts of others.
TrialTimes& operator+=(TrialTimes& to, const TrialTimes& others);

}  // namespace pascaline
