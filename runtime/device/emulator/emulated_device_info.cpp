#include "runtime/device/emulator/emulated_device_info.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "core/device/emulator_name.hpp"
#include "core/util/first_line.hpp"
#include "core/util/hash.hpp"
#include "runtime/device/emulator/emulated_device.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

std::optional<double> decimal_in(const fs::path& file) {
  const std::string line = first_line_of(file);
  double value = 0;
  const auto parsed = std::from_chars(line.data(), line.data() + line.size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

// The value of a line `key : value` of the first processor.
std::string processor_field(std::string_view key) {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with(key) && colon != std::string::npos) {
      return line.substr(std::min(colon + 2, line.size()));
    }
  }
  return {};
}

std::int64_t last_level_cache_bytes() {
  for (const int name : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    if (const long bytes = ::sysconf(name); bytes > 0) {
      return bytes;
    }
  }
  return DeviceLimits().l2_bytes;
}

std::optional<double> processor_temperature_c() {
  std::error_code ignored;
  std::optional<double> any;
  for (const auto& zone : fs::directory_iterator("/sys/class/thermal", ignored)) {
    const std::optional<double> milli = decimal_in(zone.path() / "temp");
    if (!milli || !zone.path().filename().string().starts_with("thermal_zone")) {
      continue;
    }
    const std::string type = first_line_of(zone.path() / "type");
    if (type == "x86_pkg_temp" || type.find("cpu") != std::string::npos) {
      return *milli / 1000;
    }
    any = any ? any : std::optional(*milli / 1000);
  }
  return any;
}

}  // namespace

std::string processor_identity() { return processor_field("model name") + "\n" + processor_field("flags"); }

DeviceInfo emulated_device_info() {
  DeviceInfo info;
  info.kind = DeviceKind::emulator;
  info.id = kEmulatorName;
  info.name = processor_field("model name");
  if (info.name.empty()) {
    info.name = "unknown processor";
  }
  info.architecture = stored_architecture(kEmulatorName);
  info.uuid = "HOST-" + FieldHash().add(first_line_of("/etc/machine-id")).add(info.name).hex();
  info.memory_bytes =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  info.limits = limits_of_architecture("sm_61").value_or(DeviceLimits());
  info.limits.sm_count = std::max(1u, std::thread::hardware_concurrency());
  info.limits.l2_bytes = last_level_cache_bytes();
  return info;
}

Sensors read_host_sensors() noexcept try {
  Sensors sensors;
  sensors.temperature_c = processor_temperature_c();
  if (const auto kilohertz = decimal_in("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")) {
    sensors.sm_clock_mhz = *kilohertz / 1000;
  }
  return sensors;
} catch (...) {
  return {};
}

}  // namespace pascaline
