#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "core/space/space.hpp"
#include "model/executor.hpp"
#include "model/residency/residency_rates.hpp"
#include "runtime/device/device.hpp"

namespace pascaline::cli {

/// What a pass computes, and the fewest bytes it moves.
struct PassWork {
  double flops = 0;  ///< operations, those of int8 among them
  double bytes = 0;
  double int8_ops = 0;
};

/// What the search space says of one operation. Decoding reads the `cached` rows of its cache that hold tokens, of all
/// that there is room for. Throws Error if the problem does not fit the space.
[[nodiscard]] PassWork work_of(const Space& space, Problem problem, const DeviceLimits& limits, std::int64_t cached);

/// Runs the pass once, and adds up what the search spaces of that folder say of its operations.
[[nodiscard]] PassWork observed_work(Executor& executor, const std::filesystem::path& spaces,
                                     const std::function<void()>& pass, std::int64_t cached);

}  // namespace pascaline::cli
