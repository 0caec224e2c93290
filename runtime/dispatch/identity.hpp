#pragma once

#include <string>

#include "db/store.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/device/compilers.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {

/// The device as measurements are kept under; `limits_json` holds every limit by name.
[[nodiscard]] DeviceRow device_row(const DeviceInfo& info);

/// What builds and runs code for `plan` on that device: target "sm_90" for a cubin, "compute_61" for PTX made for
/// sm_61, "host" for the emulator.
[[nodiscard]] ToolkitRow toolkit_row(const Toolchain& toolchain, const CompileTarget& plan, const DeviceInfo& info);

/// The same of a compiler that is not open.
[[nodiscard]] ToolkitRow toolkit_row(const CompilerInfo& compiler, const CompileTarget& plan, const DeviceInfo& info);

/// The target under which code of a kind for an architecture is stored: "sm_61", "compute_61" for its PTX, "host".
[[nodiscard]] std::string target_name(const std::string& architecture, BinaryKind kind);

/// The architecture that a stored target's code was made for: "sm_61" of "compute_61", any other as it is.
[[nodiscard]] std::string architecture_of_target(const std::string& target);

/// Whether both have the same compiler in the same version, whatever their targets and drivers.
[[nodiscard]] bool same_compiler(const ToolkitRow& a, const ToolkitRow& b) noexcept;

/// "nvrtc 12.9 with driver 13.0 for sm_61": a toolkit in a message.
[[nodiscard]] std::string describe(const ToolkitRow& toolkit);

/// The limits a stored device was recorded with; `otherwise` where it has none.
[[nodiscard]] DeviceLimits stored_limits(const DeviceRow& row, const DeviceLimits& otherwise);

}  // namespace pascaline
