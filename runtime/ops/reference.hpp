#pragma once

#include <cstddef>
#include <optional>
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

/// How many buffers a reference reads and writes at least.
struct ReferenceBuffers {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
};

/// Those of the reference of that name, or nothing.
[[nodiscard]] std::optional<ReferenceBuffers> host_reference_buffers(std::string_view name) noexcept;

/// For a reference that rounds values to integers on their way: how far each element of an output may be from what it
/// gives because a kernel's float32 sums took the other neighbour of a value in the middle of two integers. As a
/// HostReference, with distances for results; nullptr where the space's tolerance says all.
[[nodiscard]] HostReference find_reference_slack(std::string_view name) noexcept;

/// Those distances, of outputs as large as `outputs`; of none where the reference of that name has no slack.
[[nodiscard]] std::vector<std::vector<double>> reference_slacks(std::string_view name, const Problem& problem,
                                                                std::span<const std::vector<double>> inputs,
                                                                std::span<const std::vector<double>> outputs);

}  // namespace pascaline
