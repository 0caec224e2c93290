#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

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

/// Number of values of SampleMark.
inline constexpr std::size_t kSampleMarks = 5;

/// Samples of a trial.
struct SampleCounts {
  std::int64_t trial_id = 0;
  std::size_t total = 0;
  std::array<std::size_t, kSampleMarks> marked{};  ///< by SampleMark; those that count are at `none`
};

}  // namespace pascaline
