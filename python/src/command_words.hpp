#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace pascaline::python {

/// Reads "--name=value" words into the options of `app`, which checks them as those of a command line; throws
/// ArgumentError, which names the option as Python's callers do: "min_samples: …".
void read_words(CLI::App& app, std::vector<std::string> words);

/// "--min-samples" as "min_samples", wherever it occurs.
[[nodiscard]] std::string python_names(const std::string& text);

}  // namespace pascaline::python
