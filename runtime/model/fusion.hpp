#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/model/executor.hpp"
#include "runtime/model/fusion_mode.hpp"
#include "runtime/model/place_list.hpp"

namespace pascaline {

/// Decides for each place of a model which of its alternatives computes it: once for each kind, shape and types, when
/// it is first met there. One thread at a time.
///
/// Places and their alternatives are in places.hpp, where it also says how to add one.
class FusionPlan {
 public:
  explicit FusionPlan(Fusion fusion) : fusion_(fusion) {}

  /// Computes the place; does not wait on a device. An alternative that cannot be built there is not used, with one
  /// warning. Throws as Executor::run.
  template <typename Place>
  void run(LinearLayers& linear, const Place& place) {
    const PlaceList<Place>& list = place.list();
    list.alternatives[choice(linear, place, list)].run(linear, place);
  }

 private:
  /// What is known of an alternative when one is chosen.
  struct Candidate {
    std::size_t index = 0;
    const char* name = nullptr;
    double extra_launches = 0;
    std::vector<Executor::PlannedLaunch> launches;
  };
  struct Hash {
    std::size_t operator()(const PlaceKey& key) const noexcept { return place_hash(key); }
  };
  struct Same {
    bool operator()(const PlaceKey& a, const PlaceKey& b) const noexcept { return same_place(a, b); }
  };

  // Finding what was decided before allocates nothing.
  template <typename Place>
  std::size_t choice(LinearLayers& linear, const Place& place, const PlaceList<Place>& list) {
    Executor& executor = linear.executor();
    if (fusion_ == Fusion::off || executor.on_processor() || list.alternatives.size() < 2) {
      return 0;
    }
    if (executor.fallbacks() != fallbacks_) {  // what has fallen back is not to be part of anything
      chosen_.clear();
      fallbacks_ = executor.fallbacks();
    }
    const PlaceKey key = place.key();
    if (const auto found = chosen_.find(key); found != chosen_.end()) {
      return found->second;
    }
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < list.alternatives.size(); ++i) {
      const Alternative<Place>& alternative = list.alternatives[i];
      if (alternative.fits(key)) {
        candidates.push_back({i, alternative.name, alternative.extra_launches(key),
                              executor.launches_of([&] { alternative.run(linear, place); })});
      }
    }
    const std::size_t index = decide(executor, key, candidates);
    chosen_.emplace(key, index);
    return index;
  }
  [[nodiscard]] std::size_t decide(Executor& executor, const PlaceKey& key, std::span<const Candidate> candidates);
  [[nodiscard]] bool can_run(Executor& executor, const PlaceKey& key, const Candidate& single,
                             const Candidate& candidate);

  Fusion fusion_;
  std::unordered_map<PlaceKey, std::size_t, Hash, Same> chosen_;
  std::size_t fallbacks_ = 0;         // of the executor, when all that was chosen
  std::vector<std::string> refused_;  // operations that a warning told of
};

}  // namespace pascaline
