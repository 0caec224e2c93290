#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/device.hpp"

namespace pascaline {

/// A script of sensor readings, for trying what reacts to them without a card that misbehaves.
class SensorTrace {
 public:
  /// What the script says of one moment.
  struct Moment {
    Sensors sensors;
    double canary_scale = 1;                     ///< the canary takes that many times as long as it does
    std::optional<double> canary_us;             ///< what the canary takes instead of its real time, before scaling
    std::optional<double> processor_c;           ///< as in ThermalReading
    std::optional<double> processor_critical_c;  ///< likewise
  };

  /// Reads a script: `{"steps": [{"at_s": 0, "temperature_c": 45, …}, …], "repeat_s": 60}`, or the list alone. A value
  /// holds until a later step changes it; null makes it vanish. With `repeat_s` the script starts over whenever that
  /// time is over. Throws SpaceError with file and JSON pointer.
  [[nodiscard]] static SensorTrace load(const std::filesystem::path& file);
  /// The same from text; `file` is for errors.
  [[nodiscard]] static SensorTrace parse(std::string_view text, const std::string& file);

  /// The readings that long after the script began.
  [[nodiscard]] Moment at(double elapsed_s) const;

 private:
  struct Step {
    double at_s = 0;
    Moment moment;
  };

  std::vector<Step> steps_;
  std::optional<double> repeat_s_;
};

}  // namespace pascaline
