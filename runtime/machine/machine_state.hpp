#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace pascaline {

/// What Linux tells of the machine around the devices. `root` is the folder that /sys and /proc are looked for in, "/"
/// but for tests. Nothing of it throws: what cannot be read, or is not a number, is not known.

/// Whether it is a laptop: by the kind of case that the firmware names, else by whether it has a battery.
[[nodiscard]] bool is_laptop(const std::filesystem::path& root = "/");

/// Whether it runs on its battery: false while any mains supply is online; nothing if no supply says so.
[[nodiscard]] std::optional<bool> on_battery(const std::filesystem::path& root = "/");

/// Whether the lid is closed; nothing if there is none, or it does not tell.
[[nodiscard]] std::optional<bool> lid_closed(const std::filesystem::path& root = "/");

/// What a process was started as.
struct ProcessRow {
  std::int64_t parent = 0;
  std::string name;            ///< of its program, cut by the kernel to 15 characters
  std::string first_argument;  ///< after the program; empty if there is none, or it is not told
};

/// Nothing if there is no such process, as far as this one can see.
[[nodiscard]] std::optional<ProcessRow> process_row(std::int64_t id, const std::filesystem::path& root = "/");

/// A processor's package: its temperature, and the one at which it must slow down.
struct ProcessorTemperature {
  double temperature_c = 0;
  std::optional<double> critical_c;
};

/// The package nearest to its critical temperature (or the hottest, where none is known): by hwmon (coretemp, k10temp),
/// else by the thermal zone x86_pkg_temp. Nothing if neither is there.
[[nodiscard]] std::optional<ProcessorTemperature> processor_temperature(const std::filesystem::path& root = "/");

}  // namespace pascaline
