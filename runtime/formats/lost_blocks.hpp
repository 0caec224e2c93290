#pragma once

#include <cstddef>
#include <span>

#include "core/problem.hpp"

namespace pascaline {

/// Blocks of a quantized row whose values all became 0, though not all of them were: their scale is less than what the
/// format can hold. `row` is what `quantize_row` made of `values`; `format` is a packed one.
[[nodiscard]] std::size_t lost_blocks(ElementType format, std::span<const float> values,
                                      std::span<const std::byte> row);

}  // namespace pascaline
