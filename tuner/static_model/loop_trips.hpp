#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "runtime/device/sm61/kernel_code.hpp"
#include "tuner/static_model/launch_work.hpp"

namespace pascaline {

/// A loop and how often every thread runs it.
struct CountedLoop {
  std::size_t loop = 0;   ///< of the kernel's control flow
  double trips = 1;       ///< of a thread, on average
  sm61::IssueCost cost;   ///< once round, by the heaviest path
  bool own_only = false;  ///< the loops inside it are counted apart
};

/// Loops of a kernel whose trips follow from its work, as `estimate_from_code` says: the hottest first, then others of
/// its nest with arithmetic, then those around them, from the inside out. Empty if the work does not tell.
/// `kernel.hottest` must be there.
[[nodiscard]] std::vector<CountedLoop> counted_loops(const sm61::KernelCode& kernel, const LaunchWork& work);

/// Loops that blocks belong to, without those around them.
[[nodiscard]] std::set<std::size_t> loops_on(const sm61::KernelCode& kernel, const std::vector<std::uint32_t>& path);

/// The loop directly around one.
[[nodiscard]] std::optional<std::size_t> parent_of(const sm61::KernelCode& kernel, std::size_t loop);

}  // namespace pascaline
