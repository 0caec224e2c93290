#include "model/fusion/fusion.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/util/shown_text.hpp"
#include "core/util/stop_check.hpp"
#include "runtime/device/device_failure.hpp"

namespace pascaline {
namespace {

// Whether all that the candidate launches and "single" does not is ready for it: of one that is not, nothing is ever
// launched.
bool can_run(Executor& executor, const SiteKey& key, const SiteCandidate& single, const SiteCandidate& candidate) {
  for (const Executor::UnrunLaunch& launch : candidate.launches) {
    const bool is_single = std::ranges::any_of(
        single.launches, [&](const Executor::UnrunLaunch& other) { return same_site(launch.problem, other.problem); });
    if (is_single || executor.dispatcher() == nullptr) {
      continue;
    }
    if (executor.fell_back(launch.operation)) {
      return false;
    }
    try {
      (void)executor.dispatcher()->prepare(launch.problem.named());
    } catch (const StoppedError&) {
      throw;
    } catch (const Error& error) {
      if (is_device_failure(error) || executor.device().recording()) {
        throw;
      }
      if (dynamic_cast<const MissingCodeError*>(&error) != nullptr) {
        return false;  // a bundle need not have the code of every way
      }
      executor.warn_once(
          launch.operation,
          fmt::format("{} cannot be built for {}; {} is computed without it, not as \"{}\": {}", launch.operation,
                      executor.device().info().id, key.kernel().text(), candidate.name, clean_line(error.what())));
      return false;
    }
  }
  return true;
}

}  // namespace

void FusionDecisions::count_uses() noexcept {
  for (auto& [key, decision] : decisions_) {
    decision.uses = 0;
  }
}

void FusionDecisions::forget() noexcept {
  order_.clear();
  decisions_.clear();
  present_ = nullptr;
}

SiteChoice FusionDecisions::choose(Executor& executor, const SiteKey& key, std::span<const SiteCandidate> candidates) {
  return chooser_.choose(key, candidates, [&](const SiteCandidate& candidate) {
    return can_run(executor, key, candidates.front(), candidate);
  });
}

}  // namespace pascaline
