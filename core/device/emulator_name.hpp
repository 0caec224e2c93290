#pragma once

#include <string>
#include <string_view>

namespace pascaline {

/// The emulated device's name for users, and that of the architecture its code is for.
inline constexpr std::string_view kEmulatorName = "emulator";

/// What stored formats call it (device kind and target in databases, kind and architecture in bundles, the keys of
/// compiled kernels, DeviceInfo::architecture): with another word there, all that was measured on it would be another
/// device's. Users may give it wherever they name a device or an architecture.
inline constexpr std::string_view kStoredEmulatorName = "host";

/// Whether a name means the emulated device: "emulator" or "host".
[[nodiscard]] inline bool is_emulator_name(std::string_view name) noexcept {
  return name == kEmulatorName || name == kStoredEmulatorName;
}

/// The id of the device that a name means: "emulator" for either name of the emulator, else the name.
[[nodiscard]] inline std::string device_id_of(std::string_view name) {
  return std::string(is_emulator_name(name) ? kEmulatorName : name);
}

/// The architecture as it is stored and compiled for: "host" for either name of the emulator, else the name.
[[nodiscard]] inline std::string stored_architecture(std::string_view name) {
  return std::string(is_emulator_name(name) ? kStoredEmulatorName : name);
}

/// A stored architecture or target as users read it: "emulator" for "host", else itself.
[[nodiscard]] inline std::string shown_architecture(std::string_view stored) {
  return std::string(is_emulator_name(stored) ? kEmulatorName : stored);
}

}  // namespace pascaline
