#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
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
  dropped,   ///< ran with the right result, but racing stopped its sampling, as it is slower than the best so far
  rejected,  ///< by a constraint or by a limit of the device
  compile_failed,
  launch_failed,
  wrong_result,
  timed_out,
  crashed,
};

/// Number of values of TrialStatus.
inline constexpr std::size_t kTrialStatuses = 8;

/// Whether trials of this status have a time: they ran and gave the right result. Only these are usable.
[[nodiscard]] constexpr bool has_time(TrialStatus status) noexcept {
  return status == TrialStatus::ok || status == TrialStatus::dropped;
}

[[nodiscard]] std::string_view name_of(TrialStatus status) noexcept;
/// All names, in the order of the values.
[[nodiscard]] std::span<const std::string_view> trial_status_names() noexcept;
[[nodiscard]] std::optional<TrialStatus> trial_status_from(std::string_view name) noexcept;

/// Which stage of a sweep made the trial.
enum class TrialStage : std::uint8_t { search, finals };

[[nodiscard]] std::string_view name_of(TrialStage stage) noexcept;
[[nodiscard]] std::optional<TrialStage> trial_stage_from(std::string_view name) noexcept;

/// Why a sample does not count.
enum class SampleMark : std::uint8_t {
  none,              ///< it counts
  thermal_throttle,  ///< the card slowed down for its temperature
  power_throttle,    ///< the card slowed down for its power
  clock_drift,       ///< the SM clock was off what it was when steady
  canary_drift,      ///< the canary kernel took another time than when steady
};

[[nodiscard]] std::string_view name_of(SampleMark mark) noexcept;
[[nodiscard]] std::optional<SampleMark> sample_mark_from(std::string_view name) noexcept;

/// One timed launch, as it was measured.
struct Sample {
  double time_us = 0;
  SampleMark mark = SampleMark::none;  ///< anything else: kept for the record, not counted
  std::optional<double> temperature_c;
  std::optional<double> sm_clock_mhz;
  std::optional<double> power_w;
  [[nodiscard]] bool counted() const noexcept { return mark == SampleMark::none; }
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
  std::optional<TimeSummary>
      time;  ///< set if and only if `has_time(status)`; of the counted samples times `clock_scale`
  std::vector<Sample> samples;
  std::optional<double> canary_us;  ///< median time of the canary kernel around the samples, if there is one
  double clock_scale = 1;           ///< what the samples are multiplied by to be as if the clock had not drifted
  std::optional<double> energy_mj;  ///< millijoules a launch, where the card reports its power
  /// Median of back-to-back launches in the thermal steady state of that work, in microseconds, if it was measured.
  std::optional<double> sustained_us;
  std::int64_t shared_trial = 0;  ///< the stored trial of an identical binary whose result this is; 0: its own
  double compile_ms = 0;
  double verify_ms = 0;  ///< until it is verified
  double load_ms = 0;    ///< of verify_ms, for bringing the code to the device and preparing the launch
  double inputs_ms =
      0;  ///< of verify_ms, for drawing inputs and computing what the result must be; 0: earlier ones served
  double measure_ms = 0;  ///< of all that comes after
  double warm_up_ms = 0;  ///< of measure_ms, for launches before the first sample
  double evict_ms = 0;    ///< of measure_ms, for evicting the device's caches
  double sample_ms = 0;   ///< of measure_ms, for the launches that are timed
  double wait_ms = 0;     ///< of measure_ms, for the card to be fit to be measured on
  std::int64_t started_unix_ms = 0;
};

/// Calls `visit(name, field)` for every field that is kept of a trial but for its problem, its samples and what it
/// shares, in the order they are shown in. This list is the one place where fields are named: the database stores and
/// merges them, workers send them and the CSV has them as it says, each under its name, a `TimeSummary` as its parts.
/// `SomeTrial`: a Trial, const or not.
template <typename SomeTrial, typename Visit>
void for_each_field(SomeTrial& trial, Visit&& visit) {
  visit("config", trial.config);
  visit("status", trial.status);
  visit("stage", trial.stage);
  visit("is_default", trial.is_default);
  visit("reason", trial.reason);
  visit("time", trial.time);
  visit("occupancy", trial.occupancy);
  visit("registers", trial.resources.registers);
  visit("static_shared_bytes", trial.resources.static_shared_bytes);
  visit("constant_bytes", trial.resources.constant_bytes);
  visit("local_bytes", trial.resources.local_bytes);
  visit("local_loads", trial.resources.local_loads);
  visit("local_stores", trial.resources.local_stores);
  visit("instructions", trial.resources.instructions);
  visit("ffma", trial.resources.ffma);
  visit("max_error", trial.max_error);
  visit("binary_hash", trial.binary_hash);
  visit("compile_ms", trial.compile_ms);
  visit("verify_ms", trial.verify_ms);
  visit("load_ms", trial.load_ms);
  visit("inputs_ms", trial.inputs_ms);
  visit("measure_ms", trial.measure_ms);
  visit("warm_up_ms", trial.warm_up_ms);
  visit("evict_ms", trial.evict_ms);
  visit("sample_ms", trial.sample_ms);
  visit("wait_ms", trial.wait_ms);
  visit("started_unix_ms", trial.started_unix_ms);
  visit("canary_us", trial.canary_us);
  visit("clock_scale", trial.clock_scale);
  visit("energy_mj", trial.energy_mj);
  visit("sustained_us", trial.sustained_us);
}

}  // namespace pascaline
