#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/device/device_rates.hpp"
#include "core/space/space.hpp"
#include "core/trial.hpp"
#include "db/store.hpp"
#include "tuner/search/searcher.hpp"

namespace pascaline {

/// Usable trials of one problem that may tell something about another.
struct RelatedProblem {
  Problem problem;
  std::vector<std::pair<Config, double>> times_us;
  double device_octaves = 0;               ///< how far away the device is that measured them, 0: the same one
  std::optional<double> kernel_octaves{};  ///< how far away the problem is, if it is another kernel's
};

/// What is known of a domain's configurations before any is tried: the static model where the device is a GPU, and the
/// related problems that have enough trials: the two nearest of the same device and element types (`shape_distance`),
/// the two nearest of other types or kernels, and the two nearest of other devices (distances of shape, types and
/// device together).
[[nodiscard]] std::vector<Prior> transfer_priors(const SearchDomain& domain, const std::optional<DeviceRates>& rates,
                                                 const std::vector<RelatedProblem>& related, std::uint64_t seed);

}  // namespace pascaline
