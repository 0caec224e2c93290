#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace pascaline {

/// "1 problem", "3 problems"; of a noun whose plural ends in "s".
template <std::integral Count>
[[nodiscard]] std::string counted(Count count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace pascaline
