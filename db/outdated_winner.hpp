#pragma once

#include <optional>
#include <string>

#include "core/objective.hpp"
#include "db/store.hpp"

namespace pascaline {

/// What is stored of the trial by that objective, in the objective's unit; nothing if it was not measured.
[[nodiscard]] std::optional<double> stored_value(const Trial& trial, Objective objective);

/// Why a winner by another objective than time does harm where it takes the place of `by_time`, today's winner by time
/// of the same problem on the same device: that is better by the objective, too, as far as is stored of its
/// configuration, or so much faster that the winner would not have been compared with it. Such a winner was decided
/// before `by_time` was found. Nothing if it is of use, or the two are the same configuration.
[[nodiscard]] std::optional<std::string> why_outdated(const Winner& winner, const Winner& by_time);

}  // namespace pascaline
