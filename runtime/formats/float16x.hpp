#pragma once

#include <cstdint>
#include <span>

namespace pascaline {

/// A binary floating point format of 16 bits: a sign, `exponent_bits` of exponent with a bias of its own, the rest a
/// fraction. All codes are finite: there are no infinities and no NaN, so that the largest exponent holds numbers, too.
/// Exponent 0 holds subnormals and zeros, as in IEEE 754. docs/formats.md has the exact definition.
struct Float16x {
  int exponent_bits = 5;  ///< 4 to 8
  int bias = 15;          ///< from `least_bias` to `most_bias`, so that every code is exact in float32

  /// The largest code is below 2^128.
  [[nodiscard]] constexpr int least_bias() const noexcept { return exponent_bits == 8 ? 128 : 0; }
  /// The smallest is not below 2^-149.
  [[nodiscard]] constexpr int most_bias() const noexcept { return 135 + exponent_bits; }
  friend bool operator==(const Float16x&, const Float16x&) = default;
};

/// Exact value of a code.
[[nodiscard]] float float_from_16x(Float16x format, std::uint16_t code) noexcept;

/// The code nearest to a number, ties to even; beyond the largest, and for infinities, the largest of that sign. Not
/// for NaN.
[[nodiscard]] std::uint16_t to_float16x(Float16x format, float value) noexcept;

/// Sum of squared errors of the values in that format.
[[nodiscard]] double squared_error(Float16x format, std::span<const float> values) noexcept;

/// The format of least squared error for finite values: of each width the biases whose largest number is just above the
/// largest value, a half and a quarter of that (a few values then saturate), and two that hold all of float16 and all
/// of bfloat16, which it is therefore never worse than. {5, 15} if there are no values but zeros.
[[nodiscard]] Float16x best_float16x(std::span<const float> values) noexcept;

}  // namespace pascaline
