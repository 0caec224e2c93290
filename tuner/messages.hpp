#pragma once

#include <nlohmann/json.hpp>

#include "core/binary.hpp"
#include "core/trial.hpp"
#include "runtime/gpu/device.hpp"
#include "tuner/finals.hpp"
#include "tuner/governor.hpp"
#include "tuner/measure.hpp"

// What a sweep and its measurement worker tell each other, as JSON values; `measure_worker.hpp` lists the messages.
namespace pascaline {

void to_json(nlohmann::json& json, const Binary& binary);
void from_json(const nlohmann::json& json, Binary& binary);
void to_json(nlohmann::json& json, const Sample& sample);
void from_json(const nlohmann::json& json, Sample& sample);
/// A trial without its problem, which both sides know.
void to_json(nlohmann::json& json, const Trial& trial);
void from_json(const nlohmann::json& json, Trial& trial);
void to_json(nlohmann::json& json, const Sensors& sensors);
void from_json(const nlohmann::json& json, Sensors& sensors);
void to_json(nlohmann::json& json, const MeasureOptions& options);
void from_json(const nlohmann::json& json, MeasureOptions& options);
void to_json(nlohmann::json& json, const GovernorOptions& options);
void from_json(const nlohmann::json& json, GovernorOptions& options);
void to_json(nlohmann::json& json, const FinalsOptions& options);
void from_json(const nlohmann::json& json, FinalsOptions& options);
void to_json(nlohmann::json& json, const FinalsResult& result);
void from_json(const nlohmann::json& json, FinalsResult& result);

}  // namespace pascaline
