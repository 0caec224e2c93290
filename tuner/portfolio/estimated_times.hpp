#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/device/device_rates.hpp"
#include "core/space/space.hpp"
#include "tuner/compile/compile_variants.hpp"
#include "tuner/portfolio/choose_portfolio.hpp"

namespace pascaline {

/// What times are estimated for, and of how many configurations.
struct EstimateOptions {
  std::vector<DeviceRates> cards;  ///< of one architecture, at least one
  VariantOptions variants;         ///< its architecture, compilers, kernels, cache and seed
  std::size_t pool = 200;          ///< configurations to compile
  /// Macros computed from a problem, to be taken to change nothing of the code: fewer kernels are compiled.
  std::vector<std::string> same_code;
};

/// Configurations of a kernel, the architecture's default first, with times estimated from their machine code: a row
/// for each problem, card, compiler and end of what is not known of the hardware (`CodeEstimate`). Rows of one card,
/// compiler and end are a group.
struct EstimatedTimes {
  std::vector<Config> configs;
  TimeMatrix times;
  std::vector<std::string> groups;    ///< "20 SMs, nvrtc 12.9, least"
  std::vector<std::size_t> problems;  ///< of each row, its index
  std::vector<std::size_t> cards;     ///< likewise
};

/// Estimates the default, what the static model takes for the best of each problem, configurations drawn at random, and
/// in four further steps neighbours of the best found so far. `told` hears how many of the pool are compiled. Throws as
/// `compile_variants`, and Error if no estimate can be made of any configuration. Ends early when `stop` is set, with
/// what there is.
[[nodiscard]] EstimatedTimes estimate_times(const Space& space, const std::vector<Problem>& problems,
                                            const EstimateOptions& options,
                                            const std::function<void(std::size_t compiled)>& told,
                                            const std::atomic<bool>& stop);

/// Adds configurations until there are `most` beside the first, where an estimate tells no more differences: of those
/// that alone are within `near` times the best alone, each time the one that is farthest from all members, by steps
/// along the parameters' values.
void spread_out(const Space& space, const EstimatedTimes& estimated, std::size_t most, double near,
                PortfolioChoice& choice);

}  // namespace pascaline
