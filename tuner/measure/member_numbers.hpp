#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/space/space.hpp"
#include "runtime/formats/draw.hpp"

namespace pascaline {

/// The numbers of a buffer as float64; of structures those of all members of the first, then of the next. `type` is
/// that of a buffer that is not mixed.
[[nodiscard]] std::vector<double> widen(const Argument& buffer, ElementType type, std::span<const std::byte> bytes);
/// Types that these numbers have in turn.
[[nodiscard]] std::vector<ElementType> number_types(const Argument& buffer, ElementType type);
/// Names the number at that place as messages do: `c[17]`, or of a vector or structure `bodies[4].position.y`.
[[nodiscard]] std::string name_of_number(const Argument& buffer, std::size_t at);
/// Bytes of a buffer of structures, each member with its own fill and the bytes between members zero. `whole` has the
/// numbers of all members as its rows and columns, and the seed. Throws Error as BoundSpace::fill_range.
[[nodiscard]] std::vector<std::byte> draw_members(const BoundSpace& space, const Argument& buffer,
                                                  const DrawnMatrix& whole);

}  // namespace pascaline
