#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "core/element_type.hpp"

namespace pascaline {

// Formats that hold a row's values in blocks with scales (docs/formats.md has each one's exact definition; most have
// the layout of ggml's blocks). Both functions throw Error for any other format, and if `values` is not as long as
// whole blocks of that many bytes are.

/// The float32 values of blocks, computed in float32 in the order of operations that docs/formats.md gives, so that
/// they are bit for bit those of ggml. `blocks` need not be aligned.
void dequantize(ElementType format, std::span<const std::byte> blocks, std::span<float> values);

/// Values that a format cannot hold.
struct UnfitBlock {
  std::size_t value = 0;      ///< the first value that cannot be held, or the first of a block whose scale cannot
  std::string_view reason{};  ///< why, for a message: "is not finite", …
};

/// Blocks with a small sum of squared errors: of the scales that are tried the best, among them those of ggml's own
/// reference quantizers where scales are single numbers, so that the error is never above theirs. Stops at the first
/// block that cannot be held: a value that is not finite, or a scale beyond float16.
[[nodiscard]] std::optional<UnfitBlock> quantize(ElementType format, std::span<const float> values,
                                                 std::span<std::byte> blocks);

}  // namespace pascaline
