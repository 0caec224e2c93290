#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "db/store.hpp"
#include "runtime/device/device.hpp"
#include "tuner/measure/measure_client.hpp"
#include "tuner/sweep/sweep_task.hpp"
#include "tuner/sweep/sweep_view.hpp"

namespace pascaline {

/// What is known of a sweep's device besides its trials: its sensors, and what the governor makes of them.
class DeviceStatus {
 public:
  explicit DeviceStatus(const DeviceInfo& device);

  [[nodiscard]] const std::string& device() const noexcept { return view_.device; }
  /// Takes a reading in; returns a line to be told if the governor has begun to wait, else an empty text, and once that
  /// it measures under a power cap. A card that
  /// waits again and again for one reason, with less than a minute in between, is told of once in ten minutes, with how
  /// often it was.
  [[nodiscard]] std::string hear(const MeasureTelemetry& telemetry);
  /// Whether the governor lets it measure, as far as is known.
  [[nodiscard]] bool measuring() const;
  [[nodiscard]] bool tells_power() const noexcept { return view_.card.power_w.has_value(); }
  /// Readings since the last call.
  [[nodiscard]] std::vector<TelemetryRow> take_telemetry();
  /// For people: the device, and the task it works on, one of so many, if there is one. `stage` is left to the caller.
  [[nodiscard]] DeviceProgress view(const SweepTask* task, std::size_t tasks, bool limited) const;

 private:
  /// Waits for one reason, without its figures.
  struct Waits {
    std::int64_t seen_unix_ms = 0;  ///< last
    std::int64_t told_unix_ms = 0;  ///< last
    int times = 0;                  ///< since the first of those that are told as one
  };

  [[nodiscard]] std::string line_of_wait(const MeasureTelemetry& telemetry, bool begins);

  DeviceProgress view_;
  std::map<std::string, Waits> waits_;
  bool told_of_cap_ = false;
  std::vector<TelemetryRow> telemetry_;
};

}  // namespace pascaline
