#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pascaline {

/// Integer weights of one axis of a bicubic resize. Output i is
/// clamp((2^(precision-1) + sum over k < taps of source[first[i] + k] * weights[i * taps + k]) >> precision, 0, 255).
struct ResizeWeights {
  /// The same for all outputs and a multiple of eight; weights past an output's own taps are 0, and
  /// source there may lie past the axis.
  std::size_t taps = 0;
  int precision = 0;
  std::vector<std::size_t> first;
  std::vector<std::size_t> count;  ///< taps of the output itself; first + count is within the axis
  std::vector<std::int16_t> weights;
};

/// Weights for an axis of `in` pixels that becomes one of `out`.
[[nodiscard]] ResizeWeights resize_weights(std::int64_t in, std::int64_t out);

}  // namespace pascaline
