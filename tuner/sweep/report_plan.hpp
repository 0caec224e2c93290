#pragma once

#include "tuner/sweep/sweep_state.hpp"

namespace pascaline {

/// Reports what a sweep that was begun is going to do, and how long that is expected to take.
void report_plan(SweepState& sweep);

}  // namespace pascaline
