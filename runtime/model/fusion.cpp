#include "runtime/model/fusion.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/util/shown_text.hpp"
#include "runtime/device/device_failure.hpp"

namespace pascaline {

// The first candidate is "single", which fits everywhere. The one that saves most launches is taken, of equal ones the
// first.
std::size_t FusionPlan::decide(Executor& executor, const PlaceKey& key, std::span<const Candidate> candidates) {
  const Candidate& single = candidates.front();
  const Candidate* best = &single;
  const auto launches = [](const Candidate& candidate) {
    return static_cast<double>(candidate.launches.size()) + candidate.extra_launches;
  };
  for (const Candidate& candidate : candidates) {
    if (launches(candidate) < launches(*best) && can_run(executor, key, single, candidate)) {
      best = &candidate;
    }
  }
  return best->index;
}

// Whether all that the candidate launches and "single" does not is ready for it: of one that is not, nothing is ever
// launched.
bool FusionPlan::can_run(Executor& executor, const PlaceKey& key, const Candidate& single, const Candidate& candidate) {
  for (const Executor::PlannedLaunch& launch : candidate.launches) {
    const bool is_single = std::ranges::any_of(single.launches, [&](const Executor::PlannedLaunch& other) {
      return same_place(launch.problem, other.problem);
    });
    if (is_single || executor.dispatcher() == nullptr) {
      continue;
    }
    if (executor.fell_back(launch.operation)) {
      return false;
    }
    try {
      (void)executor.dispatcher()->prepare(launch.problem.named());
    } catch (const Error& error) {
      if (is_device_failure(error) || executor.device().recording()) {
        throw;
      }
      if (std::ranges::find(refused_, launch.operation) == refused_.end()) {
        refused_.emplace_back(launch.operation);
        executor.warn(fmt::format("{} cannot be built for {}; {} is computed without it, not as \"{}\": {}",
                                  launch.operation, executor.device().info().id, key.kernel().text(), candidate.name,
                                  clean_line(error.what())));
      }
      return false;
    }
  }
  return true;
}

}  // namespace pascaline
