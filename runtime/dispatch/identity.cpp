#include "runtime/dispatch/identity.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/device/emulator_name.hpp"

namespace pascaline {
namespace {

constexpr std::string_view kCubinPrefix = "sm_";

// "sm_61" → "6.1", "sm_120" → "12.0", "sm_90a" → "9.0a"; empty for anything else.
std::string compute_capability(std::string_view architecture) {
  if (!architecture.starts_with(kCubinPrefix)) {
    return {};
  }
  const std::string_view number = architecture.substr(kCubinPrefix.size());
  const std::size_t digits = std::min(number.find_first_not_of("0123456789"), number.size());
  if (digits < 2) {
    return {};
  }
  return fmt::format("{}.{}", number.substr(0, digits - 1), number.substr(digits - 1));
}

}  // namespace

DeviceRow device_row(const DeviceInfo& info) {
  DeviceRow row;
  row.kind = info.kind == DeviceKind::cuda ? "cuda" : kStoredEmulatorName;
  row.name = info.name;
  row.compute_capability = info.kind == DeviceKind::cuda ? compute_capability(info.architecture) : std::string{};
  row.sm_count = info.limits.sm_count;
  row.memory_bytes = info.memory_bytes;
  nlohmann::json limits = nlohmann::json::object();
  for (const auto& [name, member] : limit_members()) {
    limits[std::string(name)] = info.limits.*member;
  }
  row.limits_json = limits.dump();
  return row;
}

ToolkitRow toolkit_row(const Toolchain& toolchain, const CompileTarget& plan, const DeviceInfo& info) {
  return {toolchain.compiler(), toolchain.version(), target_name(plan.architecture, plan.kind), info.driver_version};
}

ToolkitRow toolkit_row(const CompilerInfo& compiler, const CompileTarget& plan, const DeviceInfo& info) {
  return {compiler.compiler, compiler.version, target_name(plan.architecture, plan.kind), info.driver_version};
}

bool same_compiler(const ToolkitRow& a, const ToolkitRow& b) noexcept {
  return a.compiler == b.compiler && a.version == b.version;
}

std::string describe(const ToolkitRow& toolkit) {
  const std::string driver = toolkit.driver_version.empty() ? "" : " with driver " + toolkit.driver_version;
  return fmt::format("{} {}{} for {}", toolkit.compiler, toolkit.version, driver, shown_architecture(toolkit.target));
}

DeviceLimits stored_limits(const DeviceRow& row, const DeviceLimits& otherwise) {
  const nlohmann::json stored = nlohmann::json::parse(row.limits_json, nullptr, false);
  DeviceLimits limits = otherwise;
  if (stored.is_object()) {
    for (const auto& [name, member] : limit_members()) {
      const auto found = stored.find(name);
      limits.*member =
          found != stored.end() && found->is_number_integer() ? found->get<std::int64_t>() : limits.*member;
    }
  }
  limits.sm_count = row.sm_count;
  return limits;
}

}  // namespace pascaline
