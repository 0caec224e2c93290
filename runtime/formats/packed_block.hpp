#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/problem.hpp"

namespace pascaline {

/// 32 values of a row of a packed matrix: `scales[i / 16] · values[i] - min`, times the row's scale where it has one.
struct PackedBlock {
  std::array<std::int8_t, 32> values;
  std::array<float, 2> scales;
  float min;
};

/// Block `block` of row `index` of a group of 32 rows. `group` is where the group begins.
[[nodiscard]] PackedBlock read_packed_block(ElementType format, const std::byte* group, std::int64_t index,
                                            std::int64_t block);

/// The scale that a row of int8_row has for all its values; 1 in other formats.
[[nodiscard]] float packed_row_scale(ElementType format, const std::byte* group, std::int64_t columns,
                                     std::int64_t index);

}  // namespace pascaline
