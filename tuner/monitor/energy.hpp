#pragma once

#include <optional>

#include "tuner/measure/measure.hpp"
#include "tuner/monitor/device_monitor.hpp"

namespace pascaline {

/// Launches back to back with the card's power read beside them.
struct EnergyWindow {
  std::optional<double> energy_mj;  ///< a launch; nothing if there was no power
  bool whole = false;               ///< power was reported until the end
  bool changed = false;             ///< of its readings any two differed: one that never changes is an old one
};

/// Millijoules a launch, idle power included: runs the kernel back to back, waits until the card's power, which it may
/// average over a second, has read the same for half a second (two seconds at most), then reads it about every 20 ms
/// for `window_ms` and integrates it by trapezoids. Between two readings lie as many launches each; where they took far
/// longer or shorter than most, as where the machine was busy otherwise, they do not count. Nothing if the card does
/// not report its power. `time_us` is what a launch takes. Throws what Device::launch and Device::synchronize throw.
[[nodiscard]] EnergyWindow measure_energy_window(DeviceMonitor& monitor, const TimedWork& work, double time_us,
                                                 double window_ms);

/// A power that a card can take, in watts, up to 3,000: what a card reports that measures none, or wrongly, is nothing.
[[nodiscard]] std::optional<double> sane_power_w(const Sensors& sensors);

}  // namespace pascaline
