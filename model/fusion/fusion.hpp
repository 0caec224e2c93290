#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/executor.hpp"
#include "model/fusion/fusion_choice.hpp"
#include "model/fusion/fusion_mode.hpp"
#include "model/fusion/place_list.hpp"

namespace pascaline {

/// Decides for each place of a model which of its alternatives computes it: once for each kind, shape and types, when
/// it is first met there. One thread at a time.
///
/// Places and their alternatives are in places.hpp, where it also says how to add one.
class FusionPlan {
 public:
  /// What was decided of a place.
  struct Decision {
    PlaceKey key;
    const char* what;  ///< the place, for people
    std::vector<PlaceCandidate> candidates;
    PlaceChoice choice;
    std::uint64_t uses = 0;  ///< times that it was computed since `count_uses`
  };

  explicit FusionPlan(Fusion fusion, FusionFile file = {}, const Dispatcher* dispatcher = nullptr)
      : chooser_(fusion, std::move(file), dispatcher) {}

  /// Computes the place; does not wait on a device. An alternative that cannot be built there is not used, with one
  /// warning. Throws as Executor::run.
  template <typename Place>
  void run(LinearLayers& linear, const Place& place) {
    const PlaceList<Place>& list = place.list();
    Executor& executor = linear.executor();
    if (executor.on_processor()) {  // which has nothing to launch
      list.alternatives[0].run(linear, place);
      return;
    }
    Decision& decision = decided(linear, place, list);
    ++decision.uses;
    present_ = &decision;
    const std::size_t index = decision.candidates[decision.choice.candidate].index;
    list.alternatives[index].run(linear, place);
    present_ = nullptr;
  }

  /// All that was decided, in the order of first use.
  [[nodiscard]] std::vector<const Decision*> decisions() const { return {order_.begin(), order_.end()}; }
  /// Uses are counted from now on.
  void count_uses() noexcept;
  /// The place whose operations run at the moment, if one's do: for those who observe launches.
  [[nodiscard]] const Decision* present() const noexcept { return present_; }
  /// Places are decided again: for after `Dispatcher::reload`.
  void forget() noexcept;

 private:
  struct Hash {
    std::size_t operator()(const PlaceKey& key) const noexcept { return place_hash(key); }
  };
  struct Same {
    bool operator()(const PlaceKey& a, const PlaceKey& b) const noexcept { return same_place(a, b); }
  };

  // Finding what was decided before allocates nothing.
  template <typename Place>
  Decision& decided(LinearLayers& linear, const Place& place, const PlaceList<Place>& list) {
    Executor& executor = linear.executor();
    if (executor.fallbacks() != fallbacks_) {  // what has fallen back is not to be part of anything
      forget();
      fallbacks_ = executor.fallbacks();
    }
    const PlaceKey key = place.key();
    if (const auto found = decisions_.find(key); found != decisions_.end()) {
      return found->second;
    }
    Decision decision{key, list.what, {}, {}};
    for (std::size_t i = 0; i < list.alternatives.size(); ++i) {
      const Alternative<Place>& alternative = list.alternatives[i];
      if (alternative.fits(key)) {
        decision.candidates.push_back({i, alternative.name, alternative.what, alternative.extra_launches(key),
                                       executor.launches_of([&] { alternative.run(linear, place); })});
      }
    }
    decision.choice = choose(executor, key, decision.candidates);
    Decision& kept = decisions_.emplace(key, std::move(decision)).first->second;
    order_.push_back(&kept);
    return kept;
  }
  [[nodiscard]] PlaceChoice choose(Executor& executor, const PlaceKey& key, std::span<const PlaceCandidate> candidates);

  FusionChooser chooser_;
  std::unordered_map<PlaceKey, Decision, Hash, Same> decisions_;
  std::vector<const Decision*> order_;
  const Decision* present_ = nullptr;
  std::size_t fallbacks_ = 0;  // of the executor, when all that was decided
};

}  // namespace pascaline
