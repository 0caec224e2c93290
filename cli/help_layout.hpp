#pragma once

#include <CLI/CLI.hpp>

namespace pascaline::cli {

/// Puts the options that `pascaline COMMAND --help` lists into groups, those that most need first and `--help` last. To
/// be called once every command has its options.
void arrange_help(CLI::App& app);

}  // namespace pascaline::cli
