#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/problem.hpp"

namespace pascaline {

/// A float64 computation of a kernel's result on the processor, named by its search space: what the kernel is verified
/// against where its file has no reference kernel, and on the emulated device, where such a kernel is slow.
/// `inputs`: the buffers with access `in` or `inout` in the order of the space's arguments, widened to float64.
/// `outputs`: the buffers with access `out` or `inout` in that order, sized by the caller; every element is written.
using HostReference = void (*)(const Problem& problem, std::span<const std::vector<double>> inputs,
                               std::span<std::vector<double>> outputs);

/// The reference of that name (the names search spaces use), or nullptr.
[[nodiscard]] HostReference find_host_reference(std::string_view name) noexcept;

}  // namespace pascaline
