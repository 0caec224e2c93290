#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "core/binary.hpp"
#include "core/objective.hpp"
#include "core/trial.hpp"
#include "runtime/device/device.hpp"

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

// What goes between a sweep and its workers, as JSON values. `compile_messages.hpp` and `measure_worker.hpp` list the
// messages.
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
void to_json(nlohmann::json& json, Objective objective);
void from_json(const nlohmann::json& json, Objective& objective);
/// A trial without its problem, which both sides know.
void to_json(nlohmann::json& json, const Trial& trial);
void from_json(const nlohmann::json& json, Trial& trial);

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Resources, registers, static_shared_bytes, constant_bytes, local_bytes, local_loads,
                                   local_stores, instructions, ffma)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TimeSummary, median_us, low_us, high_us, count)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Sensors, temperature_c, temperature_limit_c, sm_clock_mhz, memory_clock_mhz, power_w,
                                   throttle_reasons)

}  // namespace pascaline
