#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/element_type.hpp"
#include "core/elements.hpp"

// The blocks of docs/formats.md, byte by byte as files store them.
namespace pascaline::blocks {

inline constexpr std::size_t kShort = 32;   // values of a short block
inline constexpr std::size_t kLong = 256;   // of a long one
inline constexpr std::size_t kParts = 8;    // parts of 32 values in a block of q4_k or q5_k
inline constexpr std::size_t kGroups = 16;  // groups of 16 values in a block of q6_k, q3_k or q2_k

/// The integers that indices of four bits name, in rising order.
inline constexpr std::array<std::int8_t, 16> kNormalTable = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                             1,    13,   25,  38,  53,  69,  89,  113};

/// Twice the numbers of OCP's E2M1: 0 to 6, then the same negated.
inline constexpr std::array<std::int8_t, 16> kFloatTable = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// A float16 at any address.
struct Half {
  std::array<std::uint8_t, 2> bytes;

  [[nodiscard]] float value() const noexcept {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data(), sizeof bits);
    return float_from_half(bits);
  }
  [[nodiscard]] static Half of(float value) noexcept {
    const std::uint16_t bits = half_from_float(value);
    Half half{};
    std::memcpy(half.bytes.data(), &bits, sizeof bits);
    return half;
  }
};

/// A block of a row in a file, of formats that have blocks with scales: all packed ones but int8_row.
template <ElementType format>
struct Block;

template <>
struct Block<ElementType::q8_0> {
  Half scale;
  std::array<std::int8_t, kShort> quants;
};
template <>
struct Block<ElementType::q4_0> {
  Half scale;
  std::array<std::uint8_t, kShort / 2> quants;  // value i in the low half of byte i, value 16 + i in its high half
};
template <>
struct Block<ElementType::q4_1> {
  Half scale;
  Half min;
  std::array<std::uint8_t, kShort / 2> quants;  // as q4_0
};
template <>
struct Block<ElementType::iq4_nl> {
  Half scale;
  std::array<std::uint8_t, kShort / 2> quants;  // indices into kNormalTable, as q4_0
};
template <>
struct Block<ElementType::iq4_xs> {
  Half scale;                                  // of the parts' scales
  std::array<std::uint8_t, kParts / 4> high;   // upper 2 bits of the parts' scales: those of part p from bit 2p on
  std::array<std::uint8_t, kParts / 2> low;    // lower 4 bits: those of part p from bit 4p on
  std::array<std::uint8_t, kLong / 2> quants;  // 16 bytes of each part, as iq4_nl
};
template <>
struct Block<ElementType::mxfp4> {
  std::uint8_t exponent;                        // of the scale, see scale_of_exponent
  std::array<std::uint8_t, kShort / 2> quants;  // indices into kFloatTable, as q4_0
};
template <>
struct Block<ElementType::q5_0> {
  Half scale;
  std::array<std::uint8_t, kShort / 8> high;    // the upper bit of value i is bit i
  std::array<std::uint8_t, kShort / 2> quants;  // lower 4 bits, as q4_0
};
template <>
struct Block<ElementType::q5_1> {
  Half scale;
  Half min;
  std::array<std::uint8_t, kShort / 8> high;    // as q5_0
  std::array<std::uint8_t, kShort / 2> quants;  // as q5_0
};
template <>
struct Block<ElementType::q2_k> {
  std::array<std::uint8_t, kGroups>
      scales;  // for each group of 16 values: a scale in the low, a minimum in the high 4 bits
  std::array<std::uint8_t, kLong / 4> quants;  // as the upper 2 bits of q6_k
  Half scale;                                  // of the scales
  Half min_scale;                              // of the minima
};
template <>
struct Block<ElementType::q3_k> {
  std::array<std::uint8_t, kLong / 8> high;  // as q5_k
  std::array<std::uint8_t, kLong / 4> low;   // lower 2 bits, as the upper ones of q6_k
  std::array<std::uint8_t, 12> scales;       // of groups of 16 values, see unpack_scales
  Half scale;                                // of the scales
};
template <>
struct Block<ElementType::q4_k> {
  Half scale;                                  // of the parts' scales
  Half min_scale;                              // of the parts' minima
  std::array<std::uint8_t, 12> parts;          // scales and minima of 6 bits, see unpack_parts
  std::array<std::uint8_t, kLong / 2> quants;  // of two parts in turn: the first in low halves, the second in high ones
};
template <>
struct Block<ElementType::q5_k> {
  Half scale;                                  // as q4_k
  Half min_scale;                              // as q4_k
  std::array<std::uint8_t, 12> parts;          // as q4_k
  std::array<std::uint8_t, kLong / 8> high;    // bit p of byte i: the upper bit of value i of part p
  std::array<std::uint8_t, kLong / 2> quants;  // lower 4 bits, as q4_k
};
template <>
struct Block<ElementType::q6_k> {
  std::array<std::uint8_t, kLong / 2> low;   // lower 4 bits
  std::array<std::uint8_t, kLong / 4> high;  // upper 2 bits
  std::array<std::int8_t, kGroups> scales;   // of groups of 16 values
  Half scale;                                // of the scales
};
/// A group of AWQ's: value i in the low half of byte i, value 64 + i in its high half.
template <>
struct Block<ElementType::int4_g128> {
  std::array<std::uint8_t, 64> quants;
  Half scale;
  std::uint8_t zero;
  std::uint8_t unused;
};

/// 2^(exponent - 128): half of what OCP's E8M0 stands for, as the integers of kFloatTable are doubled.
[[nodiscard]] inline float scale_of_exponent(std::uint8_t exponent) noexcept {
  return std::ldexp(1.0F, exponent - 128);
}
/// Blocks with a larger one are refused: their products could overflow.
inline constexpr std::uint8_t kMaxExponent = 192;

/// The scale of a part, from -32 to 31.
[[nodiscard]] inline int part_scale_of(const Block<ElementType::iq4_xs>& block, std::size_t part) noexcept {
  const unsigned low = static_cast<unsigned>(block.low[part / 2]) >> (part % 2 * 4) & 0x0FU;
  const unsigned high = static_cast<unsigned>(block.high[part / 4]) >> (part % 4 * 2) & 0x03U;
  return static_cast<int>(low | high << 4U) - 32;
}

/// Sixteen scales from -32 to 31: the low four bits of each, groups i and 8 + i in a byte, then the upper two.
[[nodiscard]] inline std::array<std::int8_t, kGroups> unpack_scales(
    const std::array<std::uint8_t, 12>& packed) noexcept {
  std::array<std::int8_t, kGroups> scales{};
  for (std::size_t i = 0; i < kGroups; ++i) {
    const unsigned low = static_cast<unsigned>(packed[i % 8]) >> (i / 8 * 4) & 0x0FU;
    const unsigned high = static_cast<unsigned>(packed[8 + i % 4]) >> (i / 4 * 2) & 0x03U;
    scales[i] = static_cast<std::int8_t>(static_cast<int>(low | high << 4U) - 32);
  }
  return scales;
}
[[nodiscard]] inline std::array<std::uint8_t, 12> pack_scales(const std::array<int, kGroups>& scales) noexcept {
  std::array<std::uint8_t, 12> packed{};
  for (std::size_t i = 0; i < kGroups; ++i) {
    const auto bits = static_cast<unsigned>(scales[i] + 32);
    packed[i % 8] = static_cast<std::uint8_t>(packed[i % 8] | (bits & 0x0FU) << (i / 8 * 4));
    packed[8 + i % 4] = static_cast<std::uint8_t>(packed[8 + i % 4] | bits >> 4U << (i / 4 * 2));
  }
  return packed;
}

/// Scales and minima of the eight parts of a q4_k or q5_k block, from 0 to 63.
struct Parts {
  std::array<std::uint8_t, kParts> scales;
  std::array<std::uint8_t, kParts> mins;
};

[[nodiscard]] inline Parts unpack_parts(const std::array<std::uint8_t, 12>& packed) noexcept {
  Parts parts{};
  for (std::size_t i = 0; i < 4; ++i) {
    parts.scales[i] = packed[i] & 0x3FU;
    parts.mins[i] = packed[4 + i] & 0x3FU;
    parts.scales[4 + i] = static_cast<std::uint8_t>((packed[8 + i] & 0x0FU) | ((packed[i] >> 2U) & 0x30U));
    parts.mins[4 + i] = static_cast<std::uint8_t>((packed[8 + i] >> 4U) | ((packed[4 + i] >> 2U) & 0x30U));
  }
  return parts;
}

[[nodiscard]] inline std::array<std::uint8_t, 12> pack_parts(const Parts& parts) noexcept {
  std::array<std::uint8_t, 12> packed{};
  for (std::size_t i = 0; i < 4; ++i) {
    packed[i] = static_cast<std::uint8_t>(parts.scales[i] | ((parts.scales[4 + i] & 0x30U) << 2U));
    packed[4 + i] = static_cast<std::uint8_t>(parts.mins[i] | ((parts.mins[4 + i] & 0x30U) << 2U));
    packed[8 + i] = static_cast<std::uint8_t>((parts.scales[4 + i] & 0x0FU) | ((parts.mins[4 + i] & 0x0FU) << 4U));
  }
  return packed;
}

/// Where value `i` of a q6_k block has its bits: bytes of `low` and `high`, and how far they are shifted there.
struct SixBits {
  std::size_t low_byte;
  unsigned low_shift;
  std::size_t high_byte;
  unsigned high_shift;
};
[[nodiscard]] inline SixBits six_bits_of(std::size_t i) noexcept {
  const std::size_t half = i / 128;        // of the block
  const std::size_t quarter = i / 32 % 4;  // of that half
  const std::size_t lane = i % 32;
  return {half * 64 + quarter % 2 * 32 + lane, quarter < 2 ? 0U : 4U, half * 32 + lane,
          2 * static_cast<unsigned>(quarter)};
}

[[noreturn]] void throw_no_blocks(ElementType format);

/// Calls `use.template operator()<format>()` for a format with such blocks; throws Error for any other.
template <typename Use>
void with_blocks(ElementType format, const Use& use) {
  with_packed_format(format, [&]<ElementType packed> {
    if constexpr (packed != ElementType::int8_row) {
      static_assert(sizeof(Block<packed>) == kElementTypes[static_cast<std::size_t>(packed)].block.bytes);
      if (format == packed) {
        return use.template operator()<packed>();
      }
    }
    throw_no_blocks(format);
  });
}

/// Throws Error unless so many bytes are whole blocks of so many values.
void require_whole_blocks(ElementType format, std::size_t bytes, std::size_t values);

}  // namespace pascaline::blocks
