#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/formats/block_format.hpp"

namespace pascaline {

/// int4_g128: integers from 0 to 15 in groups of 128 values of a row, each with a float16 scale and a zero point from 0
/// to 15, as AWQ has them: `value = scale · (q - zero)`. Values of a group lie in 64 bytes: value i in the low half of
/// byte i, value 64 + i in its high half.
inline constexpr std::size_t kInt4Group = 128;

/// Where groups are read or written: as many of each as there are groups, 64 bytes of `quants` for each.
struct Int4Groups {
  std::span<std::uint8_t> quants;
  std::span<std::uint16_t> scales;  ///< float16
  std::span<std::uint8_t> zeros;
};

/// The values in float32: the difference, which is exact, times the scale. Throws Error if lengths do not agree.
void dequantize_int4(const Int4Groups& groups, std::span<float> values);

/// Groups with a small sum of squared errors. Stops at the first that cannot be held, as `quantize` of blocks.
[[nodiscard]] std::optional<UnfitBlock> quantize_int4(std::span<const float> values, const Int4Groups& groups);

}  // namespace pascaline
