#include "db/decision_history.hpp"

#include <algorithm>
#include <optional>

namespace pascaline {

std::vector<DecisionPoint> history_of(const std::vector<PastDecision>& decisions, const KernelRow& kernel,
                                      const std::string& problem, const std::vector<ToolkitRow>& toolkits,
                                      std::int64_t began_unix_ms) {
  struct Standing {
    double time_us = 0;
    double ratio = 1;
  };
  std::vector<std::optional<Standing>> standing(toolkits.size());
  std::vector<DecisionPoint> points;
  for (const PastDecision& decision : decisions) {
    const auto toolkit = std::ranges::find(toolkits, decision.toolkit);
    const bool is_asked_for = toolkit != toolkits.end() && decision.problem == problem && decision.kernel == kernel;
    if (!is_asked_for || !decision.baseline || !(decision.baseline->median_us > 0)) {
      continue;
    }
    standing[static_cast<std::size_t>(toolkit - toolkits.begin())] =
        Standing{decision.time.median_us, decision.time.median_us / decision.baseline->median_us};
    const Standing* best = nullptr;
    for (const auto& one : standing) {
      best = one && (best == nullptr || one->time_us < best->time_us) ? &*one : best;
    }
    points.push_back({static_cast<double>(decision.decided_unix_ms - began_unix_ms) / 1000, best->ratio});
  }
  return points;
}

}  // namespace pascaline
