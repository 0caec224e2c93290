#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "app/documents.hpp"
#include "cli/command.hpp"
#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/device/cuda/nvrtc.hpp"
#include "runtime/device/device.hpp"

namespace pascaline::cli {
namespace {

std::string reading(const std::optional<double>& value, const char* unit) {
  return value ? fmt::format("{:.0f} {}", *value, unit) : fmt::format("no {} reading", unit);
}

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

const Command kDevicesCommand(Heading::tune, 1, add_devices_command);

}  // namespace

}  // namespace pascaline::cli
