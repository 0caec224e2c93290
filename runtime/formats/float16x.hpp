#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

struct Float16xCode;  // kernel_templates/inputs/float16x_code.cuh, which installations have as data alone

namespace pascaline {

/// A binary floating point format of 16 bits: a sign, `exponent_bits` of exponent with a bias of its own, the rest a
/// fraction. All codes up to `largest_code()` are finite: there are no infinities and no NaN. Exponent 0 holds
/// subnormals and zeros, as in IEEE 754. {8, 127} is bfloat16. docs/formats.md has the exact definition.
struct Float16x {
  int exponent_bits = 5;  ///< 4 to 8
  int bias = 15;          ///< from `least_bias` to `most_bias`, so that every code is exact in float32

  /// The largest code is below 2^128.
  [[nodiscard]] constexpr int least_bias() const noexcept { return exponent_bits == 8 ? 127 : 0; }
  /// The smallest is not below 2^-149.
  [[nodiscard]] constexpr int most_bias() const noexcept { return 135 + exponent_bits; }
  /// Without its sign. With 8 bits the largest exponent is not used, as that of a float32 is not.
  [[nodiscard]] constexpr std::uint16_t largest_code() const noexcept { return exponent_bits == 8 ? 0x7F7F : 0x7FFF; }
  /// Whether exponent width and bias are in their ranges.
  [[nodiscard]] constexpr bool is_valid() const noexcept {
    return exponent_bits >= 4 && exponent_bits <= 8 && bias >= least_bias() && bias <= most_bias();
  }
  friend bool operator==(const Float16x&, const Float16x&) = default;
};

/// How a code becomes a float32: shifted so that its exponent ends where that of a float32 does, it is its value times
/// 2^(bias - 127), subnormal or not; the product with a power of two is exact. Needs subnormal numbers, which are not
/// flushed to zero here.
struct Float16xDecoder {
  int shift = 0;  ///< of the magnitude's 15 bits
  float scale = 1;

  explicit constexpr Float16xDecoder(Float16x format) noexcept
      : shift(8 + format.exponent_bits),
        scale(std::bit_cast<float>(static_cast<std::uint32_t>(254 - format.bias) << 23U)) {}
  /// Of codes beyond the largest: as of bfloat16's, an infinity or NaN.
  [[nodiscard]] float operator()(std::uint16_t code) const noexcept {
    const std::uint32_t bits = static_cast<std::uint32_t>(code & 0x7FFFU) << static_cast<unsigned>(shift);
    return std::bit_cast<float>(bits | (code & 0x8000U) << 16U) * scale;
  }
};

/// Exact value of a code.
[[nodiscard]] float float_from_16x(Float16x format, std::uint16_t code) noexcept;
/// Those of as many codes as there are values; `codes` need not be aligned.
void floats_from_16x(Float16x format, std::span<const std::byte> codes, std::span<float> values) noexcept;

/// Rounds numbers to that format's codes, on the processor and on devices.
[[nodiscard]] Float16xCode float16x_code(Float16x format) noexcept;
/// The code nearest to a number, ties to even; beyond the largest, and for infinities, the largest of that sign. Not
/// for NaN.
[[nodiscard]] std::uint16_t to_float16x(Float16x format, float value) noexcept;
/// Those of all values; `codes` need not be aligned.
void to_float16x(Float16x format, std::span<const float> values, std::span<std::byte> codes) noexcept;

/// Whether all finite values are codes of that format.
[[nodiscard]] bool holds_exactly(Float16x format, std::span<const float> values) noexcept;

/// Sum of squared errors of the values in that format.
[[nodiscard]] double squared_error(Float16x format, std::span<const float> values) noexcept;

/// In memory a matrix begins with a header of `layout_of(ElementType::float16x).head_bytes`: exponent width and bias,
/// int32 each, then zeros. `matrix` has at least as many bytes.
void put_float16x_header(Float16x format, std::span<std::byte> matrix) noexcept;
[[nodiscard]] Float16x float16x_header(const void* matrix) noexcept;

}  // namespace pascaline
