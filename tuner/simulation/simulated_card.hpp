#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "tuner/measure/measure_jobs.hpp"
#include "tuner/monitor/device_monitor.hpp"

namespace pascaline {

/// The card of a simulated lab, watched by the monitor of real workers. It has a clock of its own, which work and
/// waiting advance. A card without a script of its sensors is always fit.
class SimulatedCard {
 public:
  explicit SimulatedCard(const MeasureClientOptions& options);
  SimulatedCard(const SimulatedCard&) = delete;
  SimulatedCard& operator=(const SimulatedCard&) = delete;
  ~SimulatedCard();

  /// A new worker opens it, which knows nothing of those before and begins the script again.
  void open(double at_s);
  /// Valid once it was opened.
  [[nodiscard]] DeviceMonitor& monitor() { return *monitor_; }
  [[nodiscard]] double now_s() const noexcept { return now_s_; }
  /// Works or waits for that long.
  void advance(double seconds);
  /// Sets the power that the present work takes; nothing: as the script says.
  void draw_power(std::optional<double> power_w) { power_w_ = power_w; }
  /// Does nothing until then.
  void idle_until(double at_s) { advance(std::max(0.0, at_s - now_s_)); }

  /// A report of its sensors, with seconds on its clock.
  struct Reading {
    double at_s = 0;
    MeasureTelemetry telemetry;
  };
  /// Readings up to a time, each of which is returned once.
  [[nodiscard]] std::vector<Reading> take_readings(double until_s);
  /// The worker ended at that time: nothing came after it.
  void close(double at_s);

 private:
  class Chip;

  void take_reading();
  [[nodiscard]] SensorTrace::Moment moment() const;

  GovernorOptions governor_;
  std::optional<SensorTrace> trace_{};
  std::unique_ptr<Chip> chip_;
  std::optional<DeviceMonitor> monitor_{};
  std::optional<double> power_w_{};
  double opened_s_ = 0;
  double now_s_ = 0;
  double next_reading_s_ = 0;
  std::vector<Reading> readings_{};
};

}  // namespace pascaline
