#pragma once

#include <optional>

#include "tuner/measure/measure.hpp"
#include "tuner/monitor/device_monitor.hpp"

namespace pascaline {

/// Millijoules a launch, idle power included: runs the kernel back to back, waits until the card's power, which it may
/// average over a second, has read the same for half a second (two seconds at most), then reads it about every 20 ms
/// for `window_ms` and integrates it by trapezoids. Nothing if the card does not report its power. `time_us` is what a
/// launch takes. Throws what Device::launch and Device::synchronize throw.
[[nodiscard]] std::optional<double> measure_energy_mj(DeviceMonitor& monitor, const TimedWork& work, double time_us,
                                                      double window_ms);

}  // namespace pascaline
