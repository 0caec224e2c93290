#pragma once

#include <string>
#include <vector>

#include "core/space/space.hpp"
#include "db/sweep_plan.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline {

/// What a sweep is about to do, as its database keeps it to go on with. `source_hash`: of the kernel's source.
[[nodiscard]] SweepPlan plan_of(const Space& space, const std::string& source_hash,
                                const std::vector<SweepProblem>& problems, const SweepOptions& options);

}  // namespace pascaline
