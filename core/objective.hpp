#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pascaline {

/// What a winner is best at. A problem has a winner by time and, for each other objective that a sweep was asked for,
/// one by that.
enum class Objective : std::uint8_t {
  time,       ///< median time of a launch, cold or as the sweep was told
  energy,     ///< millijoules a launch
  edp,        ///< energy times time of a launch
  sustained,  ///< median time of a launch in the thermal steady state of back-to-back work
};

inline constexpr std::array kObjectives{Objective::time, Objective::energy, Objective::edp, Objective::sustained};

[[nodiscard]] std::string_view name_of(Objective objective) noexcept;
/// As it reads in a sentence, "by …": "time", "energy", "energy-delay product" or "sustained time". What options, files
/// and JSON have is `name_of`.
[[nodiscard]] std::string_view phrase_of(Objective objective) noexcept;
[[nodiscard]] std::optional<Objective> objective_from(std::string_view name) noexcept;

/// What an objective's values are in: "us", "mJ" or "mJ us".
[[nodiscard]] std::string_view unit_of(Objective objective) noexcept;

}  // namespace pascaline
