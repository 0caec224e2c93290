#pragma once

#include <vector>

#include "tuner/sweep/sweep_state.hpp"

namespace pascaline {

/// Plans a sweep, and begins its sessions or takes up those of the run that is resumed. Throws as `run_sweep`.
void begin_sweep(SweepState& sweep, const std::vector<Space>& spaces, const std::vector<SweepProblem>& problems);

}  // namespace pascaline
