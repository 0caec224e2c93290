#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "core/binary.hpp"
#include "core/trial.hpp"
#include "runtime/device/device.hpp"
#include "tuner/measure/measure.hpp"
#include "tuner/monitor/governor.hpp"
#include "tuner/sweep/finals.hpp"

// The library knows no std::optional: an absent value is null.
namespace nlohmann {
template <typename T>
struct adl_serializer<std::optional<T>> {
  static void to_json(json& out, const std::optional<T>& value) { out = value ? json(*value) : json(nullptr); }
  static void from_json(const json& in, std::optional<T>& value) {
    value = in.is_null() ? std::nullopt : std::optional<T>(in.get<T>());
  }
};
}  // namespace nlohmann

// What a sweep and its measurement worker tell each other, as JSON values; `measure_worker.hpp` lists the messages.
namespace pascaline {

void to_json(nlohmann::json& json, const Binary& binary);
void from_json(const nlohmann::json& json, Binary& binary);
void to_json(nlohmann::json& json, const Sample& sample);
void from_json(const nlohmann::json& json, Sample& sample);
void to_json(nlohmann::json& json, const Config& config);
void from_json(const nlohmann::json& json, Config& config);
/// By their names; reading throws Error for one that is not known.
void to_json(nlohmann::json& json, TrialStatus status);
void from_json(const nlohmann::json& json, TrialStatus& status);
void to_json(nlohmann::json& json, TrialStage stage);
void from_json(const nlohmann::json& json, TrialStage& stage);
/// A trial without its problem, which both sides know.
void to_json(nlohmann::json& json, const Trial& trial);
void from_json(const nlohmann::json& json, Trial& trial);

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Resources, registers, static_shared_bytes, constant_bytes, local_bytes, local_loads,
                                   local_stores, instructions, ffma)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TimeSummary, median_us, low_us, high_us, count)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Sensors, temperature_c, temperature_limit_c, sm_clock_mhz, memory_clock_mhz, power_w,
                                   throttle_reasons)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MeasureOptions, cold_cache, warm_up, min_samples, max_samples, target_half_width,
                                   budget_ms, abort_factor)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GovernorOptions, passive, margin_c, resume_c, limit_c, clock_tolerance,
                                   canary_tolerance, normalise_from, preheat_limit_s, steady_s, steady_c, settle_s,
                                   pause_limit_s, tolerated_throttle)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FinalsOptions, rounds, min_rounds, rounds_per_look, launches, p_value, tie_width,
                                   energy_window_ms, stand_in)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FinalsResult, trials, failed, winner, baseline_trial, baseline, confidence, tie,
                                   rounds, gave_up, out_of_time)

}  // namespace pascaline
