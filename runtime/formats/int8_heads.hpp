#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace pascaline {

/// The scale of a head of keys or values in an int8 cache (docs/formats.md): its largest magnitude over 127; 0 where
/// that is below the least normal float32, and not finite where a value is not.
[[nodiscard]] inline float int8_head_scale(std::span<const float> head) noexcept {
  float largest = 0;
  for (const float value : head) {
    const float magnitude = std::fabs(value);
    largest = magnitude <= largest ? largest : magnitude;  // NaN stays
    if (std::isnan(largest)) {
      return largest;
    }
  }
  const float scale = largest / 127.0F;
  return scale < std::numeric_limits<float>::min() ? 0.0F : scale;
}

/// `head / scale`, of at most 127 in magnitude: what is rounded to int8. Zeros where the scale is 0 or not finite.
inline void divide_by_scale(std::span<float> head, float scale) noexcept {
  const float inverse = scale > 0 && std::isfinite(scale) ? 1.0F / scale : 0.0F;
  for (float& value : head) {
    value = inverse > 0 ? value * inverse : 0.0F;
  }
}

}  // namespace pascaline
