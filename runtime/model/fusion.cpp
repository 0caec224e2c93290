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
  const Candidate* best = &candidates.front();
  const auto launches = [](const Candidate& candidate) {
    return static_cast<double>(candidate.launches.size()) + candidate.extra_launches;
  };
  for (const Candidate& candidate : candidates) {
    if (launches(candidate) < launches(*best) && can_run(executor, key, candidate)) {
      best = &candidate;
    }
  }
  return best->index;
}

// Whether all that the candidate launches is ready for it: nothing of one that is not is ever launched.
bool FusionPlan::can_run(Executor& executor, const PlaceKey& key, const Candidate& candidate) {
  const bool fell_back = std::ranges::any_of(
      candidate.launches, [&](const Executor::PlannedLaunch& launch) { return executor.fell_back(launch.operation); });
  if (fell_back || executor.dispatcher() == nullptr) {
    return !fell_back;
  }
  try {
    for (const Executor::PlannedLaunch& launch : candidate.launches) {
      (void)executor.dispatcher()->prepare(launch.problem.named());
    }
    return true;
  } catch (const Error& error) {
    if (is_device_failure(error) || executor.device().recording()) {
      throw;
    }
    const std::string name = fmt::format("{} of {}", candidate.name, key.kernel().text());
    if (std::ranges::find(refused_, name) == refused_.end()) {
      refused_.push_back(name);
      executor.warn(fmt::format("{} cannot be built for {} and is not used: {}", name, executor.device().info().id,
                                clean_line(error.what())));
    }
    return false;
  }
}

}  // namespace pascaline
