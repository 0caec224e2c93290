#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/elements.hpp"
#include "core/problem.hpp"
#include "runtime/formats/blocks.hpp"

namespace pascaline::cpu {

// How the formats of matrices lie in memory, for loops that are compiled for each (docs/formats.md): the 32 rows of a
// group have 16 bytes each in turn. All inline, so that loops are compiled as those around them.

inline constexpr std::int64_t kPackedRows = 32;
inline constexpr std::int64_t kUnitBytes = 16;
inline constexpr std::int64_t kUnitStep = kPackedRows * kUnitBytes;  ///< from one unit of a row to its next
inline constexpr std::int64_t kBlock = 32;                           ///< columns of a block

/// What a block's integers are multiplied with: value i of it is
/// `(scale · factors[i / 16]) · (integer - offset) - min · min_factors[i / 16]`.
struct BlockScale {
  float scale = 1;
  float min = 0;
  std::int32_t offset = 0;
  std::array<std::int32_t, 2> factors{1, 1};
  std::array<std::int32_t, 2> min_factors{1, 1};
};

inline float half_in(const std::byte* from) noexcept {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return float_from_half(bits);
}

/// 32 integers of four bits: byte i of a unit has those of values i and 16 + i.
inline void read_nibbles(const std::byte* unit, std::int8_t* to) noexcept {
  for (std::int64_t i = 0; i < kUnitBytes; ++i) {
    const auto both = std::to_integer<unsigned>(unit[i]);
    to[i] = static_cast<std::int8_t>(both & 0x0FU);
    to[kUnitBytes + i] = static_cast<std::int8_t>(both >> 4U);
  }
}

/// A format: `kBlocks` blocks of 32 columns in a chunk of `kChunkBytes` bytes. `chunk` is where it begins, `row` is
/// from 0 to 31, `block` from 0 to kBlocks - 1.
template <ElementType format>
struct PackedForm;

struct PackedByteForm {
  static constexpr std::int64_t kBlocks = 2;
  static constexpr std::int64_t kHeaders = 4 * kUnitStep;  ///< where headers begin
  static constexpr bool kHasMin = false;
  static constexpr bool kByRow = false;

  static void integers(const std::byte* chunk, std::int64_t row, std::int64_t block, std::int8_t* to) noexcept {
    const std::byte* unit = chunk + 2 * block * kUnitStep + row * kUnitBytes;
    std::memcpy(to, unit, kUnitBytes);
    std::memcpy(to + kUnitBytes, unit + kUnitStep, kUnitBytes);
  }
};

template <>
struct PackedForm<ElementType::int8_row> : PackedByteForm {
  static constexpr std::int64_t kChunkBytes = kHeaders;
  static constexpr bool kByRow = true;  ///< a row has one scale, in the group's tail
  static BlockScale scale(const std::byte* /*chunk*/, std::int64_t /*row*/, std::int64_t /*block*/) noexcept {
    return {};
  }
};

template <>
struct PackedForm<ElementType::q8_0> : PackedByteForm {
  static constexpr std::int64_t kChunkBytes = kHeaders + 4 * kPackedRows;
  static BlockScale scale(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    return {half_in(chunk + kHeaders + 4 * row + 2 * block)};
  }
};

template <std::int64_t blocks>
struct PackedNibbleForm {
  static constexpr std::int64_t kBlocks = blocks;
  static constexpr std::int64_t kHeaders = blocks * kUnitStep;
  static constexpr bool kHasMin = false;
  static constexpr bool kByRow = false;

  static void integers(const std::byte* chunk, std::int64_t row, std::int64_t block, std::int8_t* to) noexcept {
    read_nibbles(chunk + block * kUnitStep + row * kUnitBytes, to);
  }
};

template <>
struct PackedForm<ElementType::q4_0> : PackedNibbleForm<2> {
  static constexpr std::int64_t kChunkBytes = kHeaders + 4 * kPackedRows;
  static BlockScale scale(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    return {half_in(chunk + kHeaders + 4 * row + 2 * block), 0, 8};
  }
};

struct NormalIntegers {
  static constexpr std::array<std::int8_t, 16> kTable = blocks::kNormalTable;
};
struct FloatIntegers {
  static constexpr std::array<std::int8_t, 16> kTable = blocks::kFloatTable;
};

/// Indices of four bits into a table of integers.
template <std::int64_t blocks, typename Integers>
struct PackedIndexForm : PackedNibbleForm<blocks>, Integers {
  static void integers(const std::byte* chunk, std::int64_t row, std::int64_t block, std::int8_t* to) noexcept {
    PackedNibbleForm<blocks>::integers(chunk, row, block, to);
    for (std::int64_t i = 0; i < kBlock; ++i) {
      to[i] = Integers::kTable[static_cast<std::uint8_t>(to[i])];
    }
  }
};

template <>
struct PackedForm<ElementType::iq4_nl> : PackedIndexForm<2, NormalIntegers> {
  static constexpr std::int64_t kChunkBytes = kHeaders + 4 * kPackedRows;
  static BlockScale scale(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    return {half_in(chunk + kHeaders + 4 * row + 2 * block)};
  }
};

template <>
struct PackedForm<ElementType::mxfp4> : PackedIndexForm<2, FloatIntegers> {
  static constexpr std::int64_t kChunkBytes = kHeaders + 2 * kPackedRows;
  static BlockScale scale(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    return {blocks::scale_of_exponent(std::to_integer<std::uint8_t>(chunk[kHeaders + 2 * row + block]))};
  }
};

template <>
struct PackedForm<ElementType::iq4_xs> : PackedIndexForm<8, NormalIntegers> {
  static constexpr std::int64_t kChunkBytes = kHeaders + 8 * kPackedRows;
  static BlockScale scale(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    blocks::Block<ElementType::iq4_xs> of;
    std::memcpy(&of, chunk + kHeaders + 8 * row, 8);
    return {of.scale.value() * static_cast<float>(blocks::part_scale_of(of, static_cast<std::size_t>(block)))};
  }
};

template <>
struct PackedForm<ElementType::q4_1> : PackedNibbleForm<2> {
  static constexpr std::int64_t kChunkBytes = kHeaders + 8 * kPackedRows;
  static constexpr bool kHasMin = true;
  static BlockScale scale(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    const std::byte* pair = chunk + kHeaders + 8 * row + 4 * block;
    return {half_in(pair), -half_in(pair + 2)};
  }
};

/// Lower four bits as nibbles; the upper ones in 4 bytes of each row for a block, from `upper_at` on.
template <std::int64_t blocks, std::int64_t upper_at>
struct PackedFiveForm : PackedNibbleForm<blocks> {
  static constexpr std::int64_t kUpperEnd = upper_at + blocks * 4 * kPackedRows;

  static const std::byte* upper_of(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    return chunk + upper_at + 4 * (kPackedRows * block + row);
  }
  static std::uint32_t upper(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    std::uint32_t bits = 0;
    std::memcpy(&bits, upper_of(chunk, row, block), sizeof bits);
    return bits;
  }
  static void integers(const std::byte* chunk, std::int64_t row, std::int64_t block, std::int8_t* to) noexcept {
    PackedNibbleForm<blocks>::integers(chunk, row, block, to);
    const std::uint32_t bits = upper(chunk, row, block);
    for (std::int64_t i = 0; i < kBlock; ++i) {
      to[i] = static_cast<std::int8_t>(to[i] | static_cast<int>((bits >> (i % 4 * 8 + i / 4) & 1U) << 4U));
    }
  }
};

template <>
struct PackedForm<ElementType::q5_0> : PackedFiveForm<2, 2 * kUnitStep> {
  static constexpr std::int64_t kScales = kUpperEnd;
  static constexpr std::int64_t kChunkBytes = kScales + 4 * kPackedRows;
  static BlockScale scale(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    return {half_in(chunk + kScales + 4 * row + 2 * block), 0, 16};
  }
};

template <>
struct PackedForm<ElementType::q5_1> : PackedFiveForm<2, 2 * kUnitStep> {
  static constexpr std::int64_t kPairs = kUpperEnd;
  static constexpr std::int64_t kChunkBytes = kPairs + 8 * kPackedRows;
  static constexpr bool kHasMin = true;
  static BlockScale scale(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    const std::byte* pair = chunk + kPairs + 8 * row + 4 * block;
    return {half_in(pair), -half_in(pair + 2)};
  }
};

template <>
struct PackedForm<ElementType::q4_k> : PackedNibbleForm<8> {
  static constexpr std::int64_t kChunkBytes = kHeaders + kUnitStep;
  static constexpr bool kHasMin = true;
  static BlockScale scale(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    const std::byte* header = chunk + kHeaders + row * kUnitBytes;
    std::array<std::uint8_t, 12> packed{};
    std::memcpy(packed.data(), header + 4, packed.size());
    const blocks::Parts parts = blocks::unpack_parts(packed);
    const auto part = static_cast<std::size_t>(block);
    return {half_in(header) * static_cast<float>(parts.scales[part]),
            half_in(header + 2) * static_cast<float>(parts.mins[part])};
  }
};

template <>
struct PackedForm<ElementType::int4_g128> : PackedNibbleForm<4> {
  static constexpr std::int64_t kChunkBytes = kHeaders + 4 * kPackedRows;
  static BlockScale scale(const std::byte* chunk, std::int64_t row, std::int64_t /*block*/) noexcept {
    const std::byte* header = chunk + kHeaders + 4 * row;
    return {half_in(header), 0, std::to_integer<std::int32_t>(header[2])};
  }
};

template <>
struct PackedForm<ElementType::q5_k> : PackedFiveForm<8, 9 * kUnitStep> {
  static constexpr std::int64_t kChunkBytes = kUpperEnd;
  static constexpr bool kHasMin = true;
  static BlockScale scale(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    return PackedForm<ElementType::q4_k>::scale(chunk, row, block);
  }
};

template <>
struct PackedForm<ElementType::q6_k> {
  static constexpr std::int64_t kBlocks = 8;
  static constexpr std::int64_t kUpper = 8 * kUnitStep;  ///< upper two bits: 8 bytes for a block of a row
  static constexpr std::int64_t kHeaders = 12 * kUnitStep;
  static constexpr std::int64_t kScales = 13 * kUnitStep;
  static constexpr std::int64_t kChunkBytes = kScales + 2 * kPackedRows;
  static constexpr bool kHasMin = false;
  static constexpr bool kByRow = false;

  static void integers(const std::byte* chunk, std::int64_t row, std::int64_t block, std::int8_t* to) noexcept {
    read_nibbles(chunk + block * kUnitStep + row * kUnitBytes, to);
    const std::byte* upper = chunk + kUpper + block / 2 * kUnitStep + row * kUnitBytes + block % 2 * 8;
    for (std::int64_t i = 0; i < kBlock; ++i) {
      const auto bits = std::to_integer<unsigned>(upper[i % 8]) >> (2 * (i / 8)) & 3U;
      to[i] = static_cast<std::int8_t>(to[i] | static_cast<int>(bits << 4U));
    }
  }
  static BlockScale scale(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    const std::byte* factors = chunk + kHeaders + row * kUnitBytes + 2 * block;
    const auto factor = [](std::byte bits) { return std::int32_t{static_cast<std::int8_t>(bits)}; };
    return {half_in(chunk + kScales + 2 * row), 0, 32, {factor(factors[0]), factor(factors[1])}};
  }
};

/// Two bits of each value, eight blocks in a chunk. A block has eight bytes: byte i has values i, 8 + i, 16 + i, 24 +
/// i.
struct PackedTwoForm {
  static constexpr std::int64_t kBlocks = 8;
  static constexpr bool kByRow = false;

  static const std::byte* twos_of(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    return chunk + block / 2 * kUnitStep + row * kUnitBytes + block % 2 * 8;
  }
  static void integers(const std::byte* chunk, std::int64_t row, std::int64_t block, std::int8_t* to) noexcept {
    const std::byte* twos = twos_of(chunk, row, block);
    for (std::int64_t i = 0; i < kBlock; ++i) {
      to[i] = static_cast<std::int8_t>(std::to_integer<unsigned>(twos[i % 8]) >> (2 * (i / 8)) & 3U);
    }
  }
};

template <>
struct PackedForm<ElementType::q3_k> : PackedTwoForm {
  static constexpr std::int64_t kUpper = 4 * kUnitStep;  ///< upper bits: 4 bytes for a block of a row
  static constexpr std::int64_t kHeaders = 6 * kUnitStep;
  static constexpr std::int64_t kChunkBytes = 7 * kUnitStep;
  static constexpr bool kHasMin = false;

  static const std::byte* upper_of(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    return chunk + kUpper + block / 4 * kUnitStep + row * kUnitBytes + block % 4 * 4;
  }
  static void integers(const std::byte* chunk, std::int64_t row, std::int64_t block, std::int8_t* to) noexcept {
    PackedTwoForm::integers(chunk, row, block, to);
    const std::byte* upper = upper_of(chunk, row, block);
    for (std::int64_t i = 0; i < kBlock; ++i) {
      const unsigned high = std::to_integer<unsigned>(upper[i % 4]) >> (i / 4) & 1U;
      to[i] = static_cast<std::int8_t>(to[i] | static_cast<int>(high << 2U));
    }
  }
  static BlockScale scale(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    const std::byte* header = chunk + kHeaders + row * kUnitBytes;
    std::array<std::uint8_t, 12> packed{};
    std::memcpy(packed.data(), header, packed.size());
    const auto scales = blocks::unpack_scales(packed);
    const auto first = static_cast<std::size_t>(2 * block);
    return {half_in(header + 12), 0, 4, {scales[first], scales[first + 1]}};
  }
};

template <>
struct PackedForm<ElementType::q2_k> : PackedTwoForm {
  static constexpr std::int64_t kHeaders = 4 * kUnitStep;
  static constexpr std::int64_t kScales = 5 * kUnitStep;
  static constexpr std::int64_t kChunkBytes = kScales + 4 * kPackedRows;
  static constexpr bool kHasMin = true;
  static BlockScale scale(const std::byte* chunk, std::int64_t row, std::int64_t block) noexcept {
    const std::byte* factors = chunk + kHeaders + row * kUnitBytes + 2 * block;
    const std::byte* units = chunk + kScales + 4 * row;
    const auto lower = [](std::byte both) { return std::to_integer<std::int32_t>(both & std::byte{0x0F}); };
    const auto upper = [](std::byte both) { return std::to_integer<std::int32_t>(both >> 4); };
    return {half_in(units),
            half_in(units + 2),
            0,
            {lower(factors[0]), lower(factors[1])},
            {upper(factors[0]), upper(factors[1])}};
  }
};

}  // namespace pascaline::cpu
