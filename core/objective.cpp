#include "core/objective.hpp"

#include <cstddef>

namespace pascaline {
namespace {

constexpr std::array<std::string_view, kObjectives.size()> kObjectiveNames{"time", "energy", "edp", "sustained"};
constexpr std::array<std::string_view, kObjectives.size()> kObjectivePhrases{"time", "energy", "energy-delay product",
                                                                             "sustained time"};

}  // namespace

std::string_view name_of(Objective objective) noexcept { return kObjectiveNames[static_cast<std::size_t>(objective)]; }

std::string_view phrase_of(Objective objective) noexcept {
  return kObjectivePhrases[static_cast<std::size_t>(objective)];
}

std::optional<Objective> objective_from(std::string_view name) noexcept {
  for (const Objective objective : kObjectives) {
    if (name_of(objective) == name) {
      return objective;
    }
  }
  return std::nullopt;
}

std::string_view unit_of(Objective objective) noexcept {
  switch (objective) {
    case Objective::energy:
      return "mJ";
    case Objective::edp:
      return "mJ us";
    case Objective::time:
    case Objective::sustained:
      break;
  }
  return "us";
}

}  // namespace pascaline
