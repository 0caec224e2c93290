#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace pascaline {

/// "4.4 to 5.1"; "4.4" where both ends print the same.
[[nodiscard]] inline std::string range_text(std::string_view low, std::string_view high) {
  return low == high ? std::string(low) : fmt::format("{} to {}", low, high);
}

}  // namespace pascaline
