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
#include "model/fusion/site_list.hpp"

namespace pascaline {

/// Decides for each site of a model which of its alternatives computes it: once for each kind, shape and types, when
/// it is first met there. One thread at a time.
///
/// Sites and their alternatives are in sites.hpp, where it also says how to add one.
class FusionDecisions {
 public:
  /// What was decided of a site.
  struct Decision {
    SiteKey key;
    const char* what;  ///< the site, for people
    std::vector<SiteCandidate> candidates;
    SiteChoice choice;
    std::uint64_t uses = 0;  ///< times that it was computed since `count_uses`
  };

  explicit FusionDecisions(Fusion fusion, FusionFile file = {}, const Dispatcher* dispatcher = nullptr)
      : chooser_(fusion, std::move(file), dispatcher) {}

  /// Computes the site; does not wait on a device. An alternative that cannot be built there is not used, with one
  /// warning. Throws as Executor::run.
  template <typename Site>
  void run(LinearLayers& linear, const Site& site) {
    const SiteList<Site>& list = site.list();
    Executor& executor = linear.executor();
    if (executor.on_processor()) {  // which has nothing to launch
      list.alternatives[0].run(linear, site);
      return;
    }
    Decision& decision = decided(linear, site, list);
    ++decision.uses;
    present_ = &decision;
    const std::size_t index = decision.candidates[decision.choice.candidate].index;
    list.alternatives[index].run(linear, site);
    present_ = nullptr;
  }

  /// All that was decided, in the order of first use.
  [[nodiscard]] std::vector<const Decision*> decisions() const { return {order_.begin(), order_.end()}; }
  /// Uses are counted from now on.
  void count_uses() noexcept;
  /// The site whose operations run at the moment, if one's do: for those who observe launches.
  [[nodiscard]] const Decision* present() const noexcept { return present_; }
  /// Sites are decided again: for after `Dispatcher::reload`.
  void forget() noexcept;

 private:
  struct Hash {
    std::size_t operator()(const SiteKey& key) const noexcept { return site_hash(key); }
  };
  struct Same {
    bool operator()(const SiteKey& a, const SiteKey& b) const noexcept { return same_site(a, b); }
  };

  // Finding what was decided before allocates nothing.
  template <typename Site>
  Decision& decided(LinearLayers& linear, const Site& site, const SiteList<Site>& list) {
    Executor& executor = linear.executor();
    if (executor.fallbacks() != fallbacks_) {  // what has fallen back is not to be part of anything
      forget();
      fallbacks_ = executor.fallbacks();
    }
    const SiteKey key = site.key();
    if (const auto found = decisions_.find(key); found != decisions_.end()) {
      return found->second;
    }
    Decision decision{key, list.what, {}, {}};
    for (std::size_t i = 0; i < list.alternatives.size(); ++i) {
      const Alternative<Site>& alternative = list.alternatives[i];
      if (alternative.fits(key)) {
        decision.candidates.push_back({i, alternative.name, alternative.what, alternative.extra_launches(key),
                                       executor.launches_of([&] { alternative.run(linear, site); })});
      }
    }
    decision.choice = choose(executor, key, decision.candidates);
    Decision& kept = decisions_.emplace(key, std::move(decision)).first->second;
    order_.push_back(&kept);
    return kept;
  }
  [[nodiscard]] SiteChoice choose(Executor& executor, const SiteKey& key, std::span<const SiteCandidate> candidates);

  FusionChooser chooser_;
  std::unordered_map<SiteKey, Decision, Hash, Same> decisions_;
  std::vector<const Decision*> order_;
  const Decision* present_ = nullptr;
  std::size_t fallbacks_ = 0;  // of the executor, when all that was decided
};

}  // namespace pascaline
