#pragma once

#include <functional>

#include "tuner/measure/measure.hpp"
#include "tuner/monitor/device_monitor.hpp"
#include "tuner/sweep/finals.hpp"

namespace pascaline {

/// Decides simulated finals by another objective than time, after they were by time, and takes the energies of winner
/// and baseline, as `run_finals` does. `work_of`: what launches that finalist.
void decide_by_objective(FinalsResult& result, const FinalsOptions& options, DeviceMonitor& monitor,
                         const std::function<TimedWork(const Trial& finalist)>& work_of);

}  // namespace pascaline
