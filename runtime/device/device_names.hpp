#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "core/device/emulator_name.hpp"

namespace pascaline {

/// N of "cuda:N"; nothing of any other name.
[[nodiscard]] std::optional<int> cuda_ordinal(std::string_view name);

/// Requires a name that `open_device` takes ("cuda:N", "emulator"), or one of `others`, which the caller takes beside
/// them. Throws Error listing what can be given on this machine, and why there is no GPU if there is none. Whether the
/// device is there shows when it is opened.
void check_device_name(const std::string& name, std::initializer_list<std::string_view> others = {});

}  // namespace pascaline
