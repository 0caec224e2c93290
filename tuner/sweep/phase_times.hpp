#pragma once

#include <vector>

#include "tuner/sweep/device_plan.hpp"
#include "tuner/sweep/sweep.hpp"
#include "tuner/sweep/sweep_recorder.hpp"

namespace pascaline {

/// What the model's phases take on the plan's kind of device with every problem's default, and with the winners that
/// are decided by now: those of earlier runs under the same key, too. Nothing if the problems have no phases.
[[nodiscard]] std::vector<PhaseTime> phase_times(const DevicePlan& plan, SweepRecorder& recorder);

}  // namespace pascaline
