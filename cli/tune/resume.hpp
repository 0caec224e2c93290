#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/tune/sweep_options.hpp"
#include "core/space/space.hpp"
#include "db/sweep_plan.hpp"

namespace pascaline::cli {

/// A run to go on with, as its database has it. The values of its plan are checked as a command line's are; its
/// problems are not yet, nor are the names of its paths, which are only to be shown.
struct StoredRun {
  std::string uuid;
  std::vector<std::int64_t> sessions;  ///< the first first
  std::int64_t started_unix_ms = 0;
  SweepPlan plan;
};

/// The newest run of the database that did not finish and that no living process works on; throws Error if there is
/// none, or what to do if it has no plan.
[[nodiscard]] StoredRun run_to_resume(const std::filesystem::path& database);

/// The options that go on with the run: those of its plan, but for what `command`, the resuming one as parsed, gives
/// itself, all checked as a command line is. Paths come from `command` alone. Throws Error naming what is wrong.
[[nodiscard]] SweepCommandOptions resumed_options(const StoredRun& run, const CLI::App& command);

/// The plan's problems; throws Error if one is none of the space.
[[nodiscard]] std::vector<SweepProblem> resumed_problems(const StoredRun& run, const Space& space);

/// What is to be told before the run goes on: paths that it was begun with and that are not in force now, and a kernel
/// or space that has changed. Throws Error, saying what to give, if they have while their folders are not those of the
/// run, or if its NVRTC was given by a path and none is given now. `now`: the plan in force.
[[nodiscard]] std::vector<std::string> resume_notes(const StoredRun& run, const SweepPlan& now);

/// "; …" with the folders that the run was begun with, if they are not given now: where its kernel cannot be found.
[[nodiscard]] std::string missing_folders(const StoredRun& run, const CLI::App& command);

/// "going on with session 3, begun 2026-11-22 01:02 UTC: pascaline sweep …": the plan in force as a command line.
[[nodiscard]] std::string resumed_text(const StoredRun& run, const SweepPlan& now);

}  // namespace pascaline::cli
