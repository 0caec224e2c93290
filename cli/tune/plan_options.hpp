#pragma once

#include <string>
#include <utility>
#include <vector>

#include "db/sweep_plan.hpp"

namespace pascaline::cli {

/// Options with their values; a value is empty for one that takes none.
using OptionWords = std::vector<std::pair<std::string, std::string>>;

/// The plan as options of `pascaline sweep`. No path is among them, and texts are names that their options check.
[[nodiscard]] OptionWords options_of(const SweepPlan& plan);

/// "--option=value", or "--option" without one.
[[nodiscard]] std::string word_of(const std::pair<std::string, std::string>& option);

/// "--option value --other value" for people, as a shell reads it.
[[nodiscard]] std::string options_text(const OptionWords& options);

}  // namespace pascaline::cli
