#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tuner/sweep/sweep.hpp"

namespace pascaline {

/// The phases as aligned columns: calls, time before and after, speedup, problems; for each device, with a row for all
/// where there are several phases (without problems, as one may be part of several). Says how many problems are in no
/// sum. Ends with a newline; empty without phases.
[[nodiscard]] std::string phase_table(const std::vector<PhaseTime>& phases);

/// A list of objects; `speedup` is null where a phase has no times.
[[nodiscard]] nlohmann::json phases_json(const std::vector<PhaseTime>& phases);

}  // namespace pascaline
