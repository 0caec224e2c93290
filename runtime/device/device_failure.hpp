#pragma once

#include "core/error.hpp"

namespace pascaline {

/// Whether the device is what failed (it is lost, or lacks the memory now), so that another kernel would meet it too
/// and the same one might not later.
[[nodiscard]] bool is_device_failure(const Error& error) noexcept;

}  // namespace pascaline
