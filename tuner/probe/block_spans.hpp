#pragma once

#include <cstdint>
#include <span>

namespace pascaline {

/// How long the SMs were at work in one launch.
struct LaunchClocks {
  double longest = 0;  ///< clocks of the SM that was at work longest
  /// Blocks of an SM over its clocks: the median of all SMs that had any.
  double blocks_per_clock = 0;
};

/// From what kernels of the probe write: begin and end of each block in its SM's clocks (`spans`, two a block) and the
/// SMs (`places`, one a block). An SM is at work from its first block's begin to its last one's end. Throws Error if
/// there are no blocks, or a block that ends before it begins or was not written.
[[nodiscard]] LaunchClocks launch_clocks(std::span<const std::int64_t> spans, std::span<const std::int32_t> places);

}  // namespace pascaline
