#pragma once

#include <string>
#include <utility>

#include "core/file_words.hpp"
#include "db/sweep_plan.hpp"

namespace pascaline {

/// The plan as options of `pascaline sweep`. Of one that was read from a file they are to be checked (FileOptions).
[[nodiscard]] OptionWords options_of(const SweepPlan& plan);

/// "--option=value", or "--option" without one.
[[nodiscard]] std::string word_of(const std::pair<std::string, std::string>& option);

/// "--option value --other value" for people, as a shell reads it.
[[nodiscard]] std::string options_text(const OptionWords& options);

}  // namespace pascaline
