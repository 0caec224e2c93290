#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/sweep/stored_run.hpp"
#include "db/sweep_plan.hpp"

namespace pascaline {

/// What is to be told before the run is resumed: paths that it was begun with and that are not in force now, and a
/// kernel or space that has changed. Throws Error, saying what to give, if they have while their folders are not those
/// of the run, or if its NVRTC was given by a path and none is given now. `now`: the plan in force.
[[nodiscard]] std::vector<std::string> resume_notes(const StoredRun& run, const SweepPlan& now);

/// "; …" with the folders that the run was begun with, if they are not given now: where its kernel cannot be found.
[[nodiscard]] std::string missing_folders(const StoredRun& run, const CLI::App& command);

/// "going on with session 3, begun 2026-11-22 01:02 UTC: pascaline sweep …": the plan in force as a command line.
[[nodiscard]] std::string resumed_text(const StoredRun& run, const SweepPlan& now);

}  // namespace pascaline
