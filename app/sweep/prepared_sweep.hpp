#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>

#include "app/sweep/sweep_options.hpp"
#include "app/sweep/sweep_work.hpp"

namespace pascaline {

/// A sweep that is ready to be run.
struct PreparedSweep {
  SweepCommandOptions options;  ///< its `sweep` is complete
  SweepWork work;
};

/// From the options that `command`, with those of `add_sweep_options`, was parsed into; of a run to resume also what
/// its plan says. Throws Error and its kinds for what contradicts itself, is not there or fits nothing.
[[nodiscard]] PreparedSweep prepare_sweep(SweepCommandOptions options, const CLI::App& command);

/// What `pascaline sweep --json` prints.
[[nodiscard]] nlohmann::json summary_document(const SweepSummary& summary, const PreparedSweep& sweep);

}  // namespace pascaline
