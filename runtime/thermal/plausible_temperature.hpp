#pragma once

#include <optional>

namespace pascaline {

/// The reading, or nothing where it is out of all reason: 0 °C and below, above 150 °C.
[[nodiscard]] inline std::optional<double> plausible_temperature_c(const std::optional<double>& celsius) noexcept {
  constexpr double kHighestCelsius = 150;
  return celsius && *celsius > 0 && *celsius <= kHighestCelsius ? celsius : std::nullopt;
}

}  // namespace pascaline
