#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace pascaline::cli {

/// The command that the first word names, or the first two, if it is one for people; null otherwise. The program's name
/// comes before it.
[[nodiscard]] const CLI::App* command_of(const CLI::App& app, const std::vector<std::string>& words);

/// Name of a command, with that of the one it is below: "fleet plan".
[[nodiscard]] std::string full_name(const CLI::App& command);

/// What is wrong with the words of a command line that the parser itself would take for something else or tell less
/// well: a command or an option that there is not, with the one that was probably meant; an option without a value that
/// has the next option for one (`--db= --quiet`, `--db --quiet`); an empty word, as a shell's unset variable gives,
/// which would count as no option at all. Empty if nothing is. The program's name comes first.
[[nodiscard]] std::string fault_of_words(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace pascaline::cli
