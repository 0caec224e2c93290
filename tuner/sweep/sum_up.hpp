#pragma once

#include "tuner/sweep/sweep_state.hpp"

namespace pascaline {

/// Completes the summary of a sweep that has ended.
void sum_up(SweepState& sweep);

}  // namespace pascaline
