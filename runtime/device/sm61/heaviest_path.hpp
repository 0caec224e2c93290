#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/device/sm61/kernel_code.hpp"

namespace pascaline::sm61 {

/// Blocks on the heaviest way once round a loop, from its header to a branch back to it, in the order of the code: of
/// alternatives such as the two sides of a condition the one with more instructions, those of nested loops weighing ten
/// times as much a level. Without a loop: from the beginning of the kernel to its end. Blocks of nested loops are among
/// them. Time and memory are almost linear in the blocks. Throws Error if there is no such loop.
[[nodiscard]] std::vector<std::uint32_t> heaviest_path(const KernelCode& kernel, std::optional<std::size_t> loop);

/// Whether a block lies in a loop, or in one nested in it.
[[nodiscard]] bool is_within(const ControlFlow& flow, const Block& block, std::size_t loop) noexcept;

/// What the instructions of these blocks cost to issue, each counted once.
[[nodiscard]] IssueCost cost_of(const KernelCode& kernel, std::span<const std::uint32_t> blocks);

}  // namespace pascaline::sm61
