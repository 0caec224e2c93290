#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/space/space.hpp"
#include "core/trial.hpp"
#include "model/executor.hpp"
#include "model/fusion/fusion_mode.hpp"
#include "model/fusion/site_key.hpp"
#include "runtime/dispatch/dispatcher.hpp"

namespace pascaline {

/// What is known of an alternative that fits a site when one is chosen. The first candidate is "single".
struct SiteCandidate {
  std::size_t index = 0;  ///< in the list of its site
  const char* name = nullptr;
  const char* what = nullptr;
  double extra_launches = 0;  ///< see Alternative
  std::vector<Executor::UnrunLaunch> launches;
};

/// Where a choice comes from.
enum class ChoiceOrigin : std::uint8_t {
  only,       ///< there is no other alternative that fits
  off,        ///< `--fusion off`
  file,       ///< a plan that was given says so
  exact,      ///< it won on this kind of device, for just this site
  nearest,    ///< it won for the nearest sizes of this site
  estimated,  ///< the site was not measured: launches were counted, of what is not clearly slower by its kernels'
              ///< times
  refused,    ///< what was chosen cannot be built or used
};
/// "only", "off", "file", "exact", "nearest", "estimated", "refused".
[[nodiscard]] std::string_view name_of(ChoiceOrigin origin) noexcept;

/// How a site is computed, and why so.
struct SiteChoice {
  std::size_t candidate = 0;  ///< of those given
  ChoiceOrigin origin = ChoiceOrigin::only;
  std::string reason;                   ///< one line
  std::optional<TimeSummary> expected;  ///< exact: the time of the winner in its finals
};

/// Chooses among the alternatives of sites: what a file says, else what won on such a device, for the same site or
/// for its nearest sizes, else what saves launches, unless the winners of all that it launches, one by one, take
/// clearly longer than those of another alternative.
class FusionChooser {
 public:
  /// `dispatcher` has the winners; without one nothing was measured. It must outlive it.
  FusionChooser(Fusion fusion, FusionFile file, const Dispatcher* dispatcher);

  /// Whether what the candidate launches is ready for it; asked of what is about to be chosen, but for "single".
  using CanRun = std::function<bool(const SiteCandidate&)>;
  [[nodiscard]] SiteChoice choose(const SiteKey& key, std::span<const SiteCandidate> candidates,
                                  const CanRun& can_run = {});
  [[nodiscard]] Fusion fusion() const noexcept { return fusion_; }

 private:
  [[nodiscard]] std::optional<SiteChoice> from_file(const Problem& site,
                                                    std::span<const SiteCandidate> candidates) const;
  [[nodiscard]] std::optional<SiteChoice> from_winners(const SiteKey& key, const Problem& site,
                                                       std::span<const SiteCandidate> candidates);
  struct WorkTime {
    double low_us = 0;
    double median_us = 0;
    double high_us = 0;
  };
  [[nodiscard]] std::optional<WorkTime> work_of(const SiteCandidate& candidate) const;
  [[nodiscard]] SiteChoice estimated(std::span<const SiteCandidate> candidates, const CanRun& can_run) const;

  Fusion fusion_;
  FusionFile file_;
  const Dispatcher* dispatcher_;
  std::map<std::string, Space, std::less<>> spaces_;  // of the sites asked for so far
  std::string why_no_winners_;                        // where the dispatcher cannot tell of any
};

}  // namespace pascaline
