#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace pascaline {

// Activations as int8 for products with quantized weights, as the kernels do it (kernel_templates/common/quantize.cuh):
// single float32 operations, so that the integers are the same everywhere. All inline, so that loops are compiled as
// those around them.

/// Columns that share a scale, where a row does not have one for all of it.
inline constexpr int kActivationBlock = 32;

struct Int8Scale {
  float scale;    ///< the largest magnitude over 127; NaN or infinity where a value is
  float inverse;  ///< 0 where the scale is none or too small for normal numbers: all integers are then 0
};

[[nodiscard]] inline Int8Scale int8_scale(std::span<const float> values) noexcept {
  std::uint32_t largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU);
  }
  const float scale = std::bit_cast<float>(largest) / 127.0F;
  const bool normal = scale >= std::numeric_limits<float>::min();
  return {normal || !(scale >= 0) ? scale : 0.0F, normal ? 1.0F / scale : 0.0F};
}

/// The nearest integers, ties to even, as many as there are values; 0 for NaN.
inline void round_to_int8(std::span<const float> values, float inverse, std::int8_t* to) noexcept {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float product = values[i] * inverse;
    to[i] = std::isnan(product) ? std::int8_t{0}
                                : static_cast<std::int8_t>(std::clamp(std::nearbyint(product), -127.0F, 127.0F));
  }
}

}  // namespace pascaline
