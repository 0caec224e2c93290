#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/trial.hpp"
#include "runtime/gpu/device.hpp"

namespace pascaline {

/// How a configuration is timed.
struct MeasureOptions {
  bool cold_cache = true;  ///< evict the device's L2 before every sample
  int warm_up = 2;         ///< launches before the first sample, not recorded
  int min_samples = 10;
  int max_samples = 200;
  double target_half_width = 0.01;  ///< of the median's 95 % interval, relative
  double budget_ms = 1000;          ///< of one configuration's samples
  double abort_factor = 3.0;  ///< give up after 3 samples if the fastest is that many times the best so far; 0: never
};

/// Times launches until the median's interval is narrow enough or a limit is reached. `best_us` is the best median
/// so far, 0 if none. Throws what Device::time_launch_us throws.
[[nodiscard]] std::vector<Sample> measure(Device& device, const Kernel& kernel, const Geometry& geometry,
                                          std::span<void* const> arguments, const MeasureOptions& options,
                                          double best_us);

}  // namespace pascaline
