#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/trial.hpp"

namespace pascaline {

/// Energies that finals measured one after the other, and what the card was like then.
struct KnownEnergies {
  std::vector<std::pair<std::string, double>> of_configs{};  ///< text of each configuration, millijoules a launch
  std::optional<double> canary_us{};                         ///< the canary's time, which tells the clock
  std::optional<double> sm_clock_mhz{};                      ///< median of the samples', as the next
  std::optional<double> temperature_c{};
};

/// Of finalists that were timed in turn; nothing if none has an energy.
[[nodiscard]] std::optional<KnownEnergies> energies_of(const std::vector<Trial>& finalists);

/// Energies of those of `finalists` with these indices, in that order, where measuring them again would give no other
/// ones: all are known from the same finals, so that they compare, at the present clock (canaries and SM clocks within
/// 1 %, of which one at least must be told) and the present temperature (within 3 degrees: what leaks in a chip grows
/// with it). Nothing if one is not. What neither finals told is the same.
[[nodiscard]] std::optional<std::vector<double>> energies_again(const KnownEnergies& known,
                                                                const std::vector<Trial>& finalists,
                                                                const std::vector<std::size_t>& wanted);

}  // namespace pascaline
