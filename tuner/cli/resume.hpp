#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace pascaline::cli {

/// Turns this process into one that goes on with the newest run of the database that did not finish and that no living
/// process works on: the same command in the same folder, but an option that `command`, the resuming one as parsed,
/// gives replaces the run's. Returns never; throws Error if there is no such run, or it cannot be started.
[[noreturn]] void resume_run(const std::filesystem::path& database, const CLI::App& command);

/// "going on with session 3, begun 2026-11-22 01:02 UTC: pascaline sweep …", of that run's sessions.
[[nodiscard]] std::string resumed_text(const std::filesystem::path& database, const std::string& run);

}  // namespace pascaline::cli
