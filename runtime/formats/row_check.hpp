#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "core/problem.hpp"
#include "runtime/formats/block_format.hpp"

namespace pascaline {

/// Whether the bytes of a row in its file form are ones that a row can have: all scales finite, zero points from 0 to
/// 15. The first block of which that is not so, with the value that it begins with.
[[nodiscard]] std::optional<UnfitBlock> check_row(ElementType format, std::span<const std::byte> row);

}  // namespace pascaline
