#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace pascaline {

/// The power of two below a magnitude: 0 below the normal numbers, infinite for what is not finite.
[[nodiscard]] inline double power_of_two_below(double magnitude) noexcept {
  constexpr std::uint64_t kExponent = 0x7FF0000000000000;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(magnitude) & kExponent);
}

/// How far the elements of an output may be from what they must be, as numbers that a device can compare by.
struct ElementLimits {
  double relative = 0;        ///< in parts of |expected|
  double absolute = 0;        ///< and this
  double rounding = 0;        ///< in parts of the power of two below the larger of both magnitudes
  double least_rounding = 0;  ///< and at least this
  double unit = 0;            ///< an error is |value - expected| / (|expected| + unit)

  /// The largest |value - expected| of finite numbers, `size` being |expected| and `larger` the larger of both
  /// magnitudes. A device adds in the same order and rounds as float64 does.
  [[nodiscard]] double largest_distance(double size, double larger) const noexcept {
    return relative * size + absolute + std::max(power_of_two_below(larger) * rounding, least_rounding);
  }
};

}  // namespace pascaline
