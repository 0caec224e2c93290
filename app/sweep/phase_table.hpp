#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tuner/sweep/sweep.hpp"

namespace pascaline {

/// The phases with any result as aligned columns: calls, time before and after, speedup, problems with a result; for
/// each device, with a row for the whole model where it has several phases. Ends with a newline; empty without results.
[[nodiscard]] std::string phase_table(const std::vector<PhaseTime>& phases, const std::vector<ModelResult>& models);

/// "whole model: 1.59x as fast as with the defaults, 1.42x to 1.78x (95 %); results for 81 % of its time"; for each
/// device with results a line.
[[nodiscard]] std::vector<std::string> model_lines(const std::vector<ModelResult>& models);

/// "53 of 73 shapes, 19 % of the model's time, were left at their defaults"; empty where all have a result.
[[nodiscard]] std::string left_text(const SweepSummary& summary);

/// A list of objects; `speedup` is null where a phase has no results.
[[nodiscard]] nlohmann::json phases_json(const std::vector<PhaseTime>& phases);
/// The same of whole models, with their curves.
[[nodiscard]] nlohmann::json models_json(const std::vector<ModelResult>& models);
[[nodiscard]] nlohmann::json forecasts_json(const std::vector<Forecast>& forecasts);

}  // namespace pascaline
