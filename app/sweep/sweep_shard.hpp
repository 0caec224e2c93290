#pragma once

#include <optional>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/sweep/stored_run.hpp"
#include "app/sweep/sweep_options.hpp"
#include "app/sweep/sweep_work.hpp"
#include "tuner/fleet/fleet_file.hpp"

namespace pascaline {

/// Throws UsageError if `--shard` is of another number of shards than the fleet has.
void require_shard_of(const Fleet& fleet, const SweepCommandOptions& options);

/// The options of the fleet's plan, but for what `command` gives itself.
[[nodiscard]] SweepCommandOptions fleet_options(const Fleet& fleet, const CLI::App& command);

/// The options with a path, as given on a command line: absolute, and such as a version of NVRTC as they are.
[[nodiscard]] OptionWords given_paths(const SweepCommandOptions& options);

/// Throws Error, saying what to give, if the fleet was planned with paths that `given` has none for: they are never
/// taken from its file. `command`: the one to be run again, without them.
void require_paths(const Fleet& fleet, const OptionWords& given, const std::string& command);

/// The work of the shard that the options ask for, which they are completed for. Throws Error if this is another
/// version of the program than planned the fleet, or a problem does not fit its space.
[[nodiscard]] SweepWork fleet_work(const Fleet& fleet, SweepCommandOptions& options);

/// Throws Error naming the first kernel whose source or space is not that of the plan.
void require_same_kernels(const Fleet& fleet, const std::vector<PlannedKernel>& here);

/// Keeps of the work the shard's part, and notes what it is.
void keep_shard(SweepWork& work, SweepOptions& sweep, const Shard& shard);

/// Takes the sites of a model out, which compare kernels that other shards tune; what to do about them is noted.
void leave_sites_out(SweepWork& work);

/// What the run to resume is part of, if anything. Throws Error if the options ask for another shard or another fleet.
[[nodiscard]] std::optional<ShardIdentity> shard_to_resume(const StoredRun& run, SweepCommandOptions& options,
                                                           const std::optional<Fleet>& fleet);

}  // namespace pascaline
