#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/space/space.hpp"
#include "core/util/stop_check.hpp"

namespace pascaline {

/// The valid configuration with the fewest parameters changed from the default, none of `excluded`; among equals the
/// first in order of parameters and values. The search tries ever more changes up to a million candidates, then, if
/// the space is small enough to be walked, takes any valid configuration. Nothing if that finds none. Throws what
/// `check` throws.
[[nodiscard]] std::optional<Config> closest_valid(const BoundSpace& space, std::span<const Config> excluded,
                                                  StopCheck check = {});

/// The valid configuration nearest to a given one of the space: that one where it is valid, else with one parameter
/// changed, else with two; of these the one with the fewest steps along the values' order, and among equals the first
/// in order of parameters and values. Nothing if it takes more.
[[nodiscard]] std::optional<Config> nearest_valid(const BoundSpace& space, const Config& config);

/// Orders configurations as `closest_valid` tries them, the nearest to the default first, for comparing with `<`.
[[nodiscard]] std::vector<std::size_t> closeness(const Space& space, const Config& config);

}  // namespace pascaline
