#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/documents.hpp"
#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/device/cuda/nvrtc.hpp"
#include "runtime/device/device.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;

template <typename T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json device_json(const DeviceInfo& info, const Sensors& sensors) {
  json limits;
  for (const auto& [name, member] : limit_members()) {
    limits[std::string(name)] = info.limits.*member;
  }
  return {{"id", info.id},
          {"name", info.name},
          {"architecture", shown_architecture(info.architecture)},
          {"uuid", info.uuid},
          {"driver_version", info.driver_version},
          {"memory_bytes", info.memory_bytes},
          {"limits", limits},
          {"sensors",
           {{"temperature_c", optional_json(sensors.temperature_c)},
            {"temperature_limit_c", optional_json(sensors.temperature_limit_c)},
            {"sm_clock_mhz", optional_json(sensors.sm_clock_mhz)},
            {"memory_clock_mhz", optional_json(sensors.memory_clock_mhz)},
            {"power_w", optional_json(sensors.power_w)},
            {"throttle_reasons", optional_json(sensors.throttle_reasons)}}}};
}

Sensors sensors_of(const std::string& id) {
  try {
    return open_device(id)->read_sensors();
  } catch (const Error&) {
    return {};  // a device that cannot be opened now is still listed
  }
}

std::string reading(const std::optional<double>& value, const char* unit) {
  return value ? fmt::format("{:.0f} {}", *value, unit) : fmt::format("no {} reading", unit);
}

// The compiler that would be used for an architecture, or why there is none.
std::string chosen_compiler(const std::string& architecture) {
  try {
    const Toolchain toolchain = Toolchain::find(architecture);
    return fmt::format("{} {} ({})", toolchain.compiler(), toolchain.version(), toolchain.path());
  } catch (const Error& error) {
    return fmt::format("none: {}", error.what());
  }
}

}  // namespace

nlohmann::json devices_document() {
  std::string note;
  const std::vector<DeviceInfo> devices = list_devices(&note);
  json document{{"devices", json::array()}, {"nvrtc", json::array()}, {"compilers", json::object()}};
  for (const DeviceInfo& info : devices) {
    document["devices"].push_back(device_json(info, sensors_of(info.id)));
    document["compilers"][shown_architecture(info.architecture)] = chosen_compiler(info.architecture);
  }
  document["compilers"]["sm_61"] = chosen_compiler("sm_61");
  for (const NvrtcInfo& nvrtc : find_nvrtc()) {
    document["nvrtc"].push_back({{"path", nvrtc.path},
                                 {"version", nvrtc.version},
                                 {"architectures", nvrtc.architectures},
                                 {"compiles_for_sm_61", compiles_for(nvrtc, "sm_61")}});
  }
  if (!note.empty()) {
    document["note"] = note;
  }
  return document;
}

namespace {

int print_text(const std::vector<DeviceInfo>& devices, const std::string& note) {
  for (const DeviceInfo& info : devices) {
    const Sensors sensors = sensors_of(info.id);
    fmt::print("{:<8} {}\n", info.id, info.name);
    fmt::print("         {}, {} {}, {:.1f} GiB{}\n", shown_architecture(info.architecture), info.limits.sm_count,
               info.kind == DeviceKind::cuda ? "multiprocessors" : "processors",
               static_cast<double>(info.memory_bytes) / (1024.0 * 1024.0 * 1024.0),
               info.driver_version.empty() ? "" : ", driver " + info.driver_version);
    fmt::print("         {}, {}\n", reading(sensors.temperature_c, "°C"), reading(sensors.sm_clock_mhz, "MHz"));
    fmt::print("         compiler: {}\n", chosen_compiler(info.architecture));
  }
  if (!note.empty()) {
    fmt::print("no CUDA device: {}\n", note);
  }
  fmt::print("\nNVRTC found:\n");
  const auto libraries = find_nvrtc();
  for (const NvrtcInfo& nvrtc : libraries) {
    fmt::print("  {:<6} {} … {}  {}  {}\n", nvrtc.version,
               nvrtc.architectures.empty() ? "?" : nvrtc.architectures.front(),
               nvrtc.architectures.empty() ? "?" : nvrtc.architectures.back(),
               compiles_for(nvrtc, "sm_61") ? "with sm_61" : "without sm_61", nvrtc.path);
  }
  if (libraries.empty()) {
    fmt::print("  none\n");
  }
  fmt::print("for sm_61 (Pascal): {}\n", chosen_compiler("sm_61"));
  const auto for_pascal = std::count_if(libraries.begin(), libraries.end(),
                                        [](const NvrtcInfo& one) { return compiles_for(one, "sm_61"); });
  if (for_pascal > 1) {
    fmt::print("`pascaline sweep --nvrtc all` chooses among those with sm_61 for each kernel\n");
  }
  return kSuccess;
}

}  // namespace

void add_devices_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("devices", "List devices, their sensors, and the compilers found for them");
  const auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print JSON");
  command->footer("Examples:\n  pascaline devices\n  pascaline devices --json | jq '.nvrtc[].version'");
  command->callback([&action, as_json] {
    action = [as_json] {
      if (*as_json) {
        fmt::print("{}\n", devices_document().dump(2));
        return kSuccess;
      }
      std::string note;
      const std::vector<DeviceInfo> devices = list_devices(&note);
      return print_text(devices, note);
    };
  });
}

}  // namespace pascaline::cli
