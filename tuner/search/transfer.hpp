#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tuner/search/searcher.hpp"

namespace pascaline {

/// What another search measured: a neighbouring shape, or the same one on an earlier night under another key.
struct RelatedTrial {
  Point point;  ///< in the domain that is to be searched
  double time_us = 0;
};

/// Trials that make a prior at least.
inline constexpr std::size_t kMinRelated = 15;

/// A prior learned from those trials: the expectation of a Gaussian process fitted to the best of them and some others.
/// `distance` says how far away they are, 0 for the same shape: sum over dimensions of the absolute difference of the
/// logarithms; the prior is trusted less the larger it is. Nothing if there are fewer than `kMinRelated`.
[[nodiscard]] std::optional<Prior> transfer_prior(const SearchDomain& domain, std::vector<RelatedTrial> trials,
                                                  double distance, std::uint64_t seed);

}  // namespace pascaline
