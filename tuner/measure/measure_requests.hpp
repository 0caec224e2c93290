#pragma once

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "tuner/measure/measure_jobs.hpp"

namespace pascaline {

// What a measurement worker is asked for, one frame each; measure_worker.cpp reads them. `ends_at_s`: when it is to
// stop by itself, by the steady clock, which all processes share; nothing: never.

[[nodiscard]] nlohmann::json setup_request(const MeasureClientOptions& options, const std::optional<double>& ends_at_s);
[[nodiscard]] nlohmann::json problem_request(const MeasureProblem& problem);
[[nodiscard]] nlohmann::json trial_request(const TrialJob& job, const std::optional<double>& ends_at_s);
[[nodiscard]] nlohmann::json finals_request(const FinalsJob& job, const std::optional<double>& ends_at_s);

}  // namespace pascaline
