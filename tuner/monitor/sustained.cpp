#include "tuner/monitor/sustained.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

constexpr double kLookEveryUs = 20'000;
constexpr double kMaxLaunchesOfLook = 5000;  // queued at once
constexpr double kAliveEverySeconds = 1;
constexpr std::size_t kFewestLooks = 3;
constexpr int kMaxLooks = 100'000;  // should time stand still

struct Look {
  double at_s = 0;
  double time_us = 0;
  std::optional<double> temperature_c;
  std::optional<double> sm_clock_mhz;
};

std::vector<double> values_of(const std::deque<Look>& looks, std::optional<double> Look::*member) {
  std::vector<double> values;
  for (const Look& look : looks) {
    if (look.*member) {
      values.push_back(*(look.*member));
    }
  }
  return values;
}

std::vector<double> times_of_looks(const std::deque<Look>& looks) {
  std::vector<double> times;
  for (const Look& look : looks) {
    times.push_back(look.time_us);
  }
  return times;
}

// The looks are those of the last `steady_s`, and one before.
bool stands_still(const std::deque<Look>& looks, const SustainedOptions& options) {
  if (looks.size() < kFewestLooks || looks.back().at_s - looks.front().at_s < options.steady_s) {
    return false;
  }
  const auto stands = [&](const std::vector<double>& values) {
    return values.empty() || moved(values) < options.steady_share * median(values);
  };
  return moved(values_of(looks, &Look::temperature_c)) < options.steady_c &&
         stands(values_of(looks, &Look::sm_clock_mhz)) && stands(times_of_looks(looks));
}

}  // namespace

bool reports_heat(const Sensors& sensors) {
  const auto told = [](const std::optional<double>& value) { return value && *value > 0; };
  return told(sensors.temperature_c) || told(sensors.sm_clock_mhz);
}

SustainedWindow measure_sustained(DeviceMonitor& monitor, const TimedWork& work, double time_us,
                                  const SustainedOptions& options, const std::function<void()>& alive) {
  SustainedWindow window;
  const int batch = static_cast<int>(std::clamp(kLookEveryUs / std::max(time_us, 1e-3) - 1, 0.0, kMaxLaunchesOfLook));
  const double begun_s = monitor.now_s();
  double alive_s = begun_s;
  std::deque<Look> looks;
  std::vector<double> times;
  std::optional<double> begin_s;
  for (int i = 0; i < kMaxLooks; ++i) {
    for (int launch = 0; launch < batch; ++launch) {
      work.launch();
    }
    const double launch_us = work.time_us(false);
    const Sensors sensors = monitor.read_sensors();
    const double now_s = monitor.now_s();
    window.temperature_c = sensors.temperature_c;
    if (options.max_temperature_c && sensors.temperature_c > options.max_temperature_c) {
      window.why_not = fmt::format("back-to-back work warms the card to {:.0f} C, and --max-temperature is {:.0f} C",
                                   *sensors.temperature_c, *options.max_temperature_c);
      return window;
    }
    if (alive && now_s - alive_s >= kAliveEverySeconds) {
      alive();
      alive_s = now_s;
    }
    if (begin_s) {
      times.push_back(launch_us);
      if (now_s >= *begin_s + options.window_s && times.size() >= kFewestLooks) {
        break;
      }
      continue;
    }
    if (monitor.time_is_up()) {
      window.why_not = "the time was up before the card was steady";
      return window;
    }
    looks.push_back({now_s, launch_us, sensors.temperature_c, sensors.sm_clock_mhz});
    while (looks.size() > 2 && looks[1].at_s <= now_s - options.steady_s) {
      looks.pop_front();
    }
    window.steady = stands_still(looks, options);
    if (window.steady || now_s >= begun_s + options.limit_s) {
      begin_s = now_s;
    }
  }
  if (times.empty()) {
    window.why_not = "its launches take no time";
    return window;
  }
  window.median_us = median(times);
  return window;
}

}  // namespace pascaline
