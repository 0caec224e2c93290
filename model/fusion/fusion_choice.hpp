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
#include "model/fusion/place_key.hpp"
#include "runtime/dispatch/dispatcher.hpp"

namespace pascaline {

/// What is known of an alternative that fits a place when one is chosen. The first candidate is "single".
struct PlaceCandidate {
  std::size_t index = 0;  ///< in the list of its place
  const char* name = nullptr;
  const char* what = nullptr;
  double extra_launches = 0;  ///< see Alternative
  std::vector<Executor::PlannedLaunch> launches;
};

/// Where a choice comes from.
enum class ChoiceOrigin : std::uint8_t {
  only,       ///< there is no other alternative that fits
  off,        ///< `--fusion off`
  file,       ///< a plan that was given says so
  exact,      ///< it won on this kind of device, for just this place
  nearest,    ///< it won for the nearest sizes of this place
  estimated,  ///< the place was not measured: launches were counted, of what is not clearly slower by its kernels'
              ///< times
  refused,    ///< what was chosen cannot be built or used
};
/// "only", "off", "file", "exact", "nearest", "estimated", "refused".
[[nodiscard]] std::string_view name_of(ChoiceOrigin origin) noexcept;

/// How a place is computed, and why so.
struct PlaceChoice {
  std::size_t candidate = 0;  ///< of those given
  ChoiceOrigin origin = ChoiceOrigin::only;
  std::string reason;                   ///< one line
  std::optional<TimeSummary> expected;  ///< exact: the time of the winner in its finals
};

/// Chooses among the alternatives of places: what a file says, else what won on such a device, for the same place or
/// for its nearest sizes, else what saves launches, unless the winners of all that it launches, one by one, take
/// clearly longer than those of another alternative.
class FusionChooser {
 public:
  /// `dispatcher` has the winners; without one nothing was measured. It must outlive it.
  FusionChooser(Fusion fusion, FusionFile file, const Dispatcher* dispatcher);

  /// Whether what the candidate launches is ready for it; asked of what is about to be chosen, but for "single".
  using CanRun = std::function<bool(const PlaceCandidate&)>;
  [[nodiscard]] PlaceChoice choose(const PlaceKey& key, std::span<const PlaceCandidate> candidates,
                                   const CanRun& can_run = {});
  [[nodiscard]] Fusion fusion() const noexcept { return fusion_; }

 private:
  [[nodiscard]] std::optional<PlaceChoice> from_file(const Problem& place,
                                                     std::span<const PlaceCandidate> candidates) const;
  [[nodiscard]] std::optional<PlaceChoice> from_winners(const PlaceKey& key, const Problem& place,
                                                        std::span<const PlaceCandidate> candidates);
  struct WorkTime {
    double low_us = 0;
    double median_us = 0;
    double high_us = 0;
  };
  [[nodiscard]] std::optional<WorkTime> work_of(const PlaceCandidate& candidate) const;
  [[nodiscard]] PlaceChoice estimated(std::span<const PlaceCandidate> candidates, const CanRun& can_run) const;

  Fusion fusion_;
  FusionFile file_;
  const Dispatcher* dispatcher_;
  std::map<std::string, Space, std::less<>> spaces_;  // of the places asked for so far
  std::string why_no_winners_;                        // where the dispatcher cannot tell of any
};

}  // namespace pascaline
