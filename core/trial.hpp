#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/binary.hpp"
#include "core/config.hpp"
#include "core/problem.hpp"

namespace pascaline {

/// How an attempt at one configuration ended.
enum class TrialStatus : std::uint8_t {
  ok,
  rejected,  ///< by a constraint or by a limit of the device
  compile_failed,
  launch_failed,
  wrong_result,
  timed_out,
  crashed,
};

[[nodiscard]] std::string_view name_of(TrialStatus status) noexcept;
[[nodiscard]] std::optional<TrialStatus> trial_status_from(std::string_view name) noexcept;

/// Which stage of a sweep made the trial.
enum class TrialStage : std::uint8_t { search, finals };

[[nodiscard]] std::string_view name_of(TrialStage stage) noexcept;
[[nodiscard]] std::optional<TrialStage> trial_stage_from(std::string_view name) noexcept;

/// One timed launch.
struct Sample {
  double time_us = 0;
  bool counted = true;  ///< false: taken under a condition that disqualifies it, kept for the record
  std::optional<double> temperature_c;
  std::optional<double> sm_clock_mhz;
};

/// Median of samples with a distribution-free confidence interval.
struct TimeSummary {
  double median_us = 0;
  double low_us = 0;   ///< lower bound of the 95 % interval of the median
  double high_us = 0;  ///< upper bound
  int count = 0;       ///< counted samples
};

/// One attempt at one configuration of one problem, as it is stored.
struct Trial {
  Problem problem;
  Config config;
  TrialStatus status = TrialStatus::ok;
  TrialStage stage = TrialStage::search;
  bool is_default = false;  ///< the space's default configuration
  std::string reason;       ///< why not ok, or a note; one line
  Resources resources;
  double occupancy = 0;             ///< resident warps over the SM's maximum, 0 if unknown
  std::string binary_hash;          ///< of the code; empty if none was built
  std::optional<double> max_error;  ///< of the verification, in units of the tolerance's norm
  std::optional<TimeSummary> time;  ///< set if and only if status is ok
  std::vector<Sample> samples;
  double compile_ms = 0;
  double verify_ms = 0;
  double measure_ms = 0;
  std::int64_t started_unix_ms = 0;
};

}  // namespace pascaline
