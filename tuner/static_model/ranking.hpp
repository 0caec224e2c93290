#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/space/space.hpp"
#include "core/util/stop_check.hpp"
#include "tuner/static_model/code_estimate.hpp"
#include "tuner/static_model/static_model.hpp"

namespace pascaline {

/// A configuration and what is expected of it.
struct RankedConfig {
  Config config;
  Estimate estimate;
  std::optional<Resources> resources;  ///< of its binary, if it was compiled
  std::optional<CodeEstimate> code;    ///< from its machine code, if that was read
  std::string compiler{};              ///< that compiled it, "nvrtc 12.9"
};

/// The best configurations of a bound space by a static model.
struct Ranking {
  std::optional<std::uint64_t> valid;  ///< configurations of the space; nothing where they are too many to be counted
  std::uint64_t ranked = 0;            ///< of them, estimated; fewer where only a sample was
  std::vector<RankedConfig> best;
};

/// Estimates every valid configuration or, if there are more or they cannot be listed, `most` of them drawn uniformly,
/// and gives the `top` best, best first. Throws SpaceError if no configuration is valid, Error if an expression has no
/// value for one, and what `check` throws.
[[nodiscard]] Ranking rank_configs(const BoundSpace& space, const DeviceRates& rates, std::size_t top,
                                   std::uint64_t most, std::uint64_t seed, const StopCheck& check = {});

/// Best first; equal times in the order they were in. Those with an estimate from code come first, by it.
void sort_by_time(std::vector<RankedConfig>& configs);

}  // namespace pascaline
