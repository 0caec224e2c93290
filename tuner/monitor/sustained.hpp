#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tuner/measure/measure.hpp"
#include "tuner/monitor/device_monitor.hpp"

namespace pascaline {

/// How work is brought to the thermal steady state, and timed there.
struct SustainedOptions {
  double limit_s = 60;          ///< until it is steady, at most
  double window_s = 2;          ///< of what is timed then
  double steady_s = 3;          ///< how long temperature, clock and launches must stand still to be called steady
  double steady_c = 1;          ///< a temperature that moves by less meanwhile stands still
  double steady_share = 0.005;  ///< the same of the clock and of launches, relative
  std::optional<double> max_temperature_c = std::nullopt;  ///< work that warms the card beyond it is not measured
};

/// What came of it.
struct SustainedWindow {
  std::optional<double> median_us;  ///< a launch; nothing if it was not measured
  bool steady = false;              ///< it stood still before the limit
  std::optional<double> temperature_c;
  std::string why_not;  ///< why there is no time; empty if there is
};

/// Runs work back to back until the card's temperature and clock, as far as it reports them, and the time of a launch
/// stand still, then times a launch about every 20 ms of it, caches as the work leaves them. The governor sees none of
/// it: a card that throttles in the long run is what is to be found out. `time_us` is about what a launch takes.
/// `alive` is called about every second; may be empty. Throws what TimedWork throws.
[[nodiscard]] SustainedWindow measure_sustained(DeviceMonitor& monitor, const TimedWork& work, double time_us,
                                                const SustainedOptions& options, const std::function<void()>& alive);

/// Whether a card's sensors tell enough to see that it is steady: its temperature or its clock.
[[nodiscard]] bool reports_heat(const Sensors& sensors);

}  // namespace pascaline
