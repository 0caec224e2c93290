#pragma once

#include <filesystem>
#include <string>

#include "runtime/device/device.hpp"

namespace pascaline {

/// Why a tuned database is of no use on that device: it has winners, all of other devices. Names those and says what to
/// do. Empty if it has some for a device like this, or none at all. Throws as `Store`.
[[nodiscard]] std::string reason_database_is_foreign(const std::filesystem::path& database, const DeviceInfo& device);

}  // namespace pascaline
