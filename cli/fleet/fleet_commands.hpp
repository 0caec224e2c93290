#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "app/sweep/sweep_options.hpp"
#include "cli/command.hpp"
#include "core/file_words.hpp"
#include "tuner/fleet/fleet_file.hpp"

namespace pascaline::cli {

// Each adds a subcommand of `pascaline fleet`.
void add_fleet_plan_command(CLI::App& fleet, Action& action);
void add_fleet_submit_command(CLI::App& fleet, Action& action);
void add_fleet_run_command(CLI::App& fleet, Action& action);
void add_fleet_status_command(CLI::App& fleet, Action& action);
void add_fleet_gather_command(CLI::App& fleet, Action& action);

/// The folder that all of them take.
void add_fleet_folder(CLI::App& command, std::string& folder);

/// The options of `sweep` that name a path: they come from the command line of whoever runs shards.
void add_path_options(CLI::App& command, SweepCommandOptions& options);

/// "pascaline fleet run FOLDER --kernels …": for a shell.
[[nodiscard]] std::string fleet_words(std::string_view command, const std::string& folder, const OptionWords& paths);

/// The fleet of a folder, which is made absolute; throws Error saying how to plan one if there is none.
[[nodiscard]] Fleet fleet_of(std::string& folder);

/// The file of this program, for machines that see the same files.
[[nodiscard]] std::filesystem::path own_program();

/// Throws Error if the clocks of this machine and of the fleet's folder, or of who planned it, differ by more than an
/// hour: what tells lost shards from slow ones, and the newer of two winners, would be wrong.
void require_same_clock(const std::string& folder, const Fleet& fleet);

/// Clocks that differ by more are not the same clock badly set, but another.
inline constexpr double kMaxClockDifferenceS = 3600;

}  // namespace pascaline::cli
