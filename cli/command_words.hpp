#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace pascaline::cli {

/// What is wrong with the words of a command line that the parser itself would take for something else: an option
/// without a value that has the next option for one (`--db= --quiet`, `--db --quiet`), or an empty word, as a shell's
/// unset variable gives, which would count as no option at all. Empty if nothing is. The program's name comes first.
[[nodiscard]] std::string fault_of_words(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace pascaline::cli
