#pragma once

#include <vector>

#include <CLI/CLI.hpp>

#include "app/sweep/plan_options.hpp"
#include "app/sweep/stored_run.hpp"
#include "app/sweep/sweep_options.hpp"
#include "core/space/space.hpp"

namespace pascaline {

/// The options that resume the run: those of its plan and, where it has none, of `more`, but for what `command`, the
/// resuming one as parsed, gives itself, all checked as a command line is. Paths come from `command` alone. Throws
/// Error naming what is wrong.
[[nodiscard]] SweepCommandOptions resumed_options(const StoredRun& run, const OptionWords& more,
                                                  const CLI::App& command);

/// The options that a file gives, but for what `command` gives itself, all checked as a command line is. Throws Error,
/// as a fault of `run`, if one is not such as a file may give (FileOptions).
[[nodiscard]] SweepCommandOptions planned_options(const StoredRun& run, const OptionWords& planned,
                                                  const CLI::App& command);

/// The plan's problems of the kernels of these spaces; throws Error if one does not fit its space, or there is none.
[[nodiscard]] std::vector<SweepProblem> resumed_problems(const StoredRun& run, const std::vector<Space>& spaces);

}  // namespace pascaline
