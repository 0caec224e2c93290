#include "runtime/machine/machine_state.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace pascaline {
namespace {

namespace fs = std::filesystem;

// The first line, without spaces at its end; nothing if the file cannot be read. These files are of one short line, and
// may vanish between two looks.
std::optional<std::string> first_line(const fs::path& file) {
  std::array<char, 256> bytes{};
  std::ifstream stream(file, std::ios::binary);
  stream.read(bytes.data(), bytes.size());
  std::string text(bytes.data(), static_cast<std::size_t>(stream.gcount()));
  text = text.substr(0, text.find('\n'));
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) {
    text.pop_back();
  }
  return text.empty() ? std::nullopt : std::optional(text);
}

std::optional<std::int64_t> number_in(const fs::path& file) {
  const auto text = first_line(file);
  std::int64_t value = 0;
  if (!text) {
    return std::nullopt;
  }
  const char* const end = text->data() + text->size();
  const auto [stopped, fault] = std::from_chars(text->data(), end, value);
  return fault == std::errc() && stopped == end ? std::optional(value) : std::nullopt;
}

// Of a file of thousandths of a degree.
std::optional<double> celsius_in(const fs::path& file) {
  const auto value = number_in(file);
  return value ? std::optional(static_cast<double>(*value) / 1000) : std::nullopt;
}

// What is in a folder, in order of names; nothing if it is not there.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code fault;
  for (fs::directory_iterator at(folder, fault), end; !fault && at != end; at.increment(fault)) {
    entries.push_back(at->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// A battery of the machine itself, not of a mouse.
bool is_own_battery(const fs::path& supply) {
  return first_line(supply / "type") == "Battery" && first_line(supply / "scope").value_or("System") != "Device";
}

double below_critical(const ProcessorTemperature& package) {
  constexpr double kUsualCritical = 100;
  return package.critical_c.value_or(kUsualCritical) - package.temperature_c;
}

// A sensor of nonsense is passed over for another that makes sense, so it must not be the nearest to its limit.
bool is_plausible(double temperature_c) { return temperature_c > 0 && temperature_c <= 150; }

void keep_nearest(std::optional<ProcessorTemperature>& nearest, const ProcessorTemperature& package) {
  if (is_plausible(package.temperature_c) && (!nearest || below_critical(package) < below_critical(*nearest))) {
    nearest = package;
  }
}

// The package's sensor of each chip of a processor: "Package id 0" of coretemp, "Tctl" of k10temp.
void look_at_chip(const fs::path& chip, std::optional<ProcessorTemperature>& nearest) {
  const auto name = first_line(chip / "name");
  if (name != "coretemp" && name != "k10temp") {
    return;
  }
  for (const fs::path& file : entries_of(chip)) {
    constexpr std::string_view kEnd = "_label";
    const std::string label_file = file.filename().string();
    const auto label = label_file.ends_with(kEnd) ? first_line(file) : std::nullopt;
    if (!label || (!label->starts_with("Package id") && *label != "Tctl")) {
      continue;
    }
    const std::string sensor = label_file.substr(0, label_file.size() - kEnd.size());
    if (const auto temperature = celsius_in(chip / (sensor + "_input"))) {
      keep_nearest(nearest, {*temperature, celsius_in(chip / (sensor + "_crit"))});
    }
  }
}

void look_at_zone(const fs::path& zone, std::optional<ProcessorTemperature>& nearest) {
  const auto temperature = first_line(zone / "type") == "x86_pkg_temp" ? celsius_in(zone / "temp") : std::nullopt;
  if (!temperature) {
    return;
  }
  ProcessorTemperature package{*temperature, std::nullopt};
  for (int trip = 0; trip < 16; ++trip) {
    const std::string point = "trip_point_" + std::to_string(trip);
    if (first_line(zone / (point + "_type")) == "critical") {
      package.critical_c = celsius_in(zone / (point + "_temp"));
    }
  }
  keep_nearest(nearest, package);
}

}  // namespace

bool is_laptop(const fs::path& root) {
  // SMBIOS, "System Enclosure or Chassis Types": portable, laptop, notebook, hand held, sub notebook, tablet,
  // convertible, detachable; desktop to server cases.
  constexpr std::array<std::int64_t, 8> kCarried{8, 9, 10, 11, 14, 30, 31, 32};
  constexpr std::array<std::int64_t, 9> kStanding{3, 4, 5, 6, 7, 13, 17, 23, 28};
  if (const auto chassis = number_in(root / "sys/class/dmi/id/chassis_type")) {
    const auto is_in = [&](const auto& kinds) {
      return std::find(kinds.begin(), kinds.end(), *chassis) != kinds.end();
    };
    if (is_in(kCarried) || is_in(kStanding)) {
      return is_in(kCarried);
    }
  }
  const std::vector<fs::path> supplies = entries_of(root / "sys/class/power_supply");
  return std::any_of(supplies.begin(), supplies.end(), is_own_battery);
}

std::optional<bool> on_battery(const fs::path& root) {
  std::optional<bool> on;
  for (const fs::path& supply : entries_of(root / "sys/class/power_supply")) {
    const auto type = first_line(supply / "type");
    if (type != "Mains" && type != "USB") {
      continue;
    }
    const auto online = number_in(supply / "online");
    if (online && *online > 0) {
      return false;
    }
    // A socket for USB-C that nothing is plugged into says nothing of a machine that is charged otherwise.
    if (online && type == "Mains") {
      on = true;
    }
  }
  if (on) {
    return on;
  }
  for (const fs::path& supply : entries_of(root / "sys/class/power_supply")) {
    if (is_own_battery(supply) && first_line(supply / "status") == "Discharging") {
      return true;
    }
  }
  return std::nullopt;
}

std::optional<bool> lid_closed(const fs::path& root) {
  for (const fs::path& lid : entries_of(root / "proc/acpi/button/lid")) {
    const auto state = first_line(lid / "state");  // "state:      open"
    if (state && state->ends_with("closed")) {
      return true;
    }
    if (state && state->ends_with("open")) {
      return false;
    }
  }
  return std::nullopt;
}

std::optional<ProcessRow> process_row(std::int64_t id, const fs::path& root) {
  const fs::path folder = root / "proc" / std::to_string(id);
  // "PID (name) state parent …"; the name may have brackets of its own.
  const std::string line = first_line(folder / "stat").value_or("");
  const std::size_t open = line.find('(');
  const std::size_t close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open || close + 4 >= line.size()) {
    return std::nullopt;
  }
  ProcessRow row;
  const char* const from = line.data() + close + 4;
  if (std::from_chars(from, line.data() + line.size(), row.parent).ec != std::errc()) {
    return std::nullopt;
  }
  row.name = line.substr(open + 1, close - open - 1);
  const std::string command = first_line(folder / "cmdline").value_or("");
  if (const std::size_t end = command.find('\0'); end != std::string::npos) {
    row.first_argument = command.substr(end + 1, command.find('\0', end + 1) - end - 1);
  }
  return row;
}

std::optional<ProcessorTemperature> processor_temperature(const fs::path& root) {
  std::optional<ProcessorTemperature> nearest;
  for (const fs::path& chip : entries_of(root / "sys/class/hwmon")) {
    look_at_chip(chip, nearest);
  }
  if (!nearest) {
    for (const fs::path& zone : entries_of(root / "sys/class/thermal")) {
      look_at_zone(zone, nearest);
    }
  }
  return nearest;
}

}  // namespace pascaline
