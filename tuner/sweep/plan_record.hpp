#pragma once

#include <vector>

#include "db/sweep_plan.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline {

/// What a sweep is about to do, as its database keeps it to be resumed.
[[nodiscard]] SweepPlan plan_of(std::vector<PlannedKernel> kernels, const std::vector<SweepProblem>& problems,
                                const SweepOptions& options);

}  // namespace pascaline
