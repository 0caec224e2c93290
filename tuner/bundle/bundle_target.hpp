#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/binary.hpp"
#include "core/device/device_limits.hpp"
#include "db/store.hpp"

namespace pascaline {

/// What a bundle is wanted for.
struct BundleTargetOptions {
  std::string architecture = "sm_61";  ///< or "emulator"
  bool ptx = false;                    ///< PTX made for it, which newer devices run too
  std::string device_name;             ///< of the winners' device; empty: the only one there is
  std::int64_t sm_count = 0;           ///< its multiprocessors; 0: any, and without winners the architecture's usual
};

/// What a bundle is made for, and of which winners.
struct BundleTarget {
  std::string architecture;
  BinaryKind kind = BinaryKind::cubin;
  DeviceLimits limits;                ///< of the device, no looser than the architecture's
  std::optional<DeviceRow> device{};  ///< the winners'; without winners the emulated device, or none
  std::string driver_version{};       ///< of the newest winner
  std::vector<Winner> winners{};      ///< of that device and target, outdated ones among them; the newest first
};

/// The winners of a database that are for this target. Throws StoreError, and Error if the architecture is unknown, if
/// there are no such winners, or if they are of several kinds of devices: it names them.
[[nodiscard]] BundleTarget tuned_target(const std::filesystem::path& database, const BundleTargetOptions& options);

/// The target without winners, with the limits of the architecture or of the emulated device. Throws Error if it is
/// unknown.
[[nodiscard]] BundleTarget untuned_target(const BundleTargetOptions& options);

}  // namespace pascaline
