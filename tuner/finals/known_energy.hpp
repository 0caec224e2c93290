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

/// Energies of the `finalists` with these indices, in that order, if measuring them again would not change them: the
/// same finals measured all of them, at the present clock (canaries and SM clocks within 1 %; at least one of the two
/// must be known) and the present temperature (within 3 degrees, since leakage grows with it). Otherwise nothing. A
/// value that is unknown in both finals counts as equal.
[[nodiscard]] std::optional<std::vector<double>> energies_again(const KnownEnergies& known,
                                                                const std::vector<Trial>& finalists,
                                                                const std::vector<std::size_t>& wanted);

}  // namespace pascaline
