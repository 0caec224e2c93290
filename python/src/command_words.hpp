#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace pascaline::python {

/// Reads "--name=value" words into the options of `app`, which checks them as those of a command line; throws
/// ArgumentError, which names the option as Python's callers do: "min_samples: …".
void read_words(CLI::App& app, std::vector<std::string> words);

/// Names of the options that words can be given for.
[[nodiscard]] std::vector<std::string> option_names(CLI::App& app);

/// "--min-samples" as "min_samples", wherever it occurs but between backticks, where commands are.
[[nodiscard]] std::string python_names(const std::string& text);

}  // namespace pascaline::python
