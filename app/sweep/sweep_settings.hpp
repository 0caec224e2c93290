#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/sweep/sweep_options.hpp"
#include "core/space/space.hpp"
#include "db/sweep_plan.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline {

/// Makes of what the words say what the sweep does. Throws Error where a device, a time or a folder is not there.
void set_sweep(const SweepCommandOptions& options, SweepOptions& sweep);

/// Options with paths that were given. Absolute, as whoever resumes may be in another folder.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> paths_of(const SweepCommandOptions& options);

/// Kernels as they are here; throws Error if one cannot be read.
[[nodiscard]] std::vector<PlannedKernel> planned_kernels(const SweepCommandOptions& options,
                                                         const std::vector<Space>& spaces);

}  // namespace pascaline
