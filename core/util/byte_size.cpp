#include "core/util/byte_size.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace pascaline {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 14> kByteUnits{{{"B", 1.0},
                                                                          {"KiB", 1024.0},
                                                                          {"MiB", 1048576.0},
                                                                          {"GiB", 1073741824.0},
                                                                          {"TiB", 1099511627776.0},
                                                                          {"kB", 1e3},
                                                                          {"KB", 1e3},
                                                                          {"MB", 1e6},
                                                                          {"GB", 1e9},
                                                                          {"TB", 1e12},
                                                                          {"K", 1024.0},
                                                                          {"M", 1048576.0},
                                                                          {"G", 1073741824.0},
                                                                          {"T", 1099511627776.0}}};

[[noreturn]] void refuse(std::string_view text) {
  throw Error(
      fmt::format("'{}' is not a size; give a number with a unit (B; K, M, G, T or KiB, MiB, GiB, TiB of 1024; kB, MB, "
                  "GB, TB of 1000), such as 1.5GiB or 800M",
                  text));
}

}  // namespace

std::uint64_t parse_byte_size(std::string_view text) {
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  unit.remove_prefix(unit.starts_with(' ') ? 1 : 0);
  constexpr double kMaxBytes = 9.2e18;
  for (const auto& [name, scale] : kByteUnits) {
    const double bytes = std::floor(number * scale);
    if (fault == std::errc() && unit == name && bytes >= 1 && bytes <= kMaxBytes) {
      return static_cast<std::uint64_t>(bytes);
    }
  }
  refuse(text);
}

std::string shown_bytes(std::uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes < 1024) {
    return fmt::format("{} B", bytes);
  }
  if (number < 1048576.0 * 0.99995) {
    return fmt::format("{:.1f} KiB", number / 1024.0);
  }
  return number < 1073741824.0 * 0.99995 ? fmt::format("{:.1f} MiB", number / 1048576.0)
                                         : fmt::format("{:.2f} GiB", number / 1073741824.0);
}

}  // namespace pascaline
