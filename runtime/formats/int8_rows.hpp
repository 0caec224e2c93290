#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace pascaline {

// ElementType::int8_row: a row's values are integers from -127 to 127 times the row's scale. All inline, so that
// loops are compiled as those around them.

/// The scale of a row: its largest magnitude over 127; 0 where that is too small for float32.
[[nodiscard]] inline float int8_row_scale(std::span<const float> row) noexcept {
  float largest = 0;
  for (const float value : row) {
    largest = std::max(largest, std::fabs(value));
  }
  return largest / 127.0F;
}

/// The integers that are nearest to `values / scale`, ties to even, as many as `to` holds; zeros for a scale of 0.
inline void quantise_to_int8(std::span<const float> values, float scale, std::span<std::int8_t> to) noexcept {
  for (std::size_t i = 0; i < to.size(); ++i) {
    // A scale that is nearly too small for float32 is not exact: its quotients may exceed 127.
    const float quotient = scale > 0 ? std::nearbyint(values[i] / scale) : 0.0F;
    to[i] = static_cast<std::int8_t>(std::clamp(quotient, -127.0F, 127.0F));
  }
}

/// `to = from · scale` for `count` values of one row.
inline void widen_int8(const std::int8_t* from, float scale, float* to, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<float>(from[i]) * scale;
  }
}

}  // namespace pascaline
