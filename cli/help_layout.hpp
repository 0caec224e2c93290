#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace pascaline::cli {

/// A heading in the help of a command, with the options below it.
struct ShownGroup {
  std::string heading;
  std::vector<const CLI::Option*> options;
};

/// The options that `pascaline COMMAND --help` lists, in its order: those that most users need first, `--help` last.
[[nodiscard]] std::vector<ShownGroup> shown_groups(const CLI::App& command);

/// Has the help of every command show its options so. To be called once every command has its options.
void arrange_help(CLI::App& app);

}  // namespace pascaline::cli
