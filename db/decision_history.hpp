#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model_time.hpp"
#include "db/store.hpp"

namespace pascaline {

/// How a problem came to its result by `Store::decisions`: at each moment the ratio of the best of the toolkits'
/// winners so far.
[[nodiscard]] std::vector<DecisionPoint> history_of(const std::vector<PastDecision>& decisions, const KernelRow& kernel,
                                                    const std::string& problem, const std::vector<ToolkitRow>& toolkits,
                                                    std::int64_t began_unix_ms);

}  // namespace pascaline
