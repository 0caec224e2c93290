#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/documents.hpp"
#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/device/cuda/nvrtc.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {
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

}  // namespace

Sensors sensors_of(const std::string& id) {
  try {
    return open_device(id)->read_sensors();
  } catch (const Error&) {
    return {};  // a device that cannot be opened now is still listed
  }
}

std::string chosen_compiler(const std::string& architecture) {
  try {
    const Toolchain toolchain = Toolchain::find(architecture);
    return fmt::format("{} {} ({})", toolchain.compiler(), toolchain.version(), toolchain.path());
  } catch (const Error& error) {
    return fmt::format("none: {}", error.what());
  }
}

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

}  // namespace pascaline
