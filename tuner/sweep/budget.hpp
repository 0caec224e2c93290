#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "db/store.hpp"
#include "tuner/finals/finals_decision.hpp"

namespace pascaline {

/// How much of the finals fits in a time.
struct FinalsFit {
  std::size_t finalists = 0;  ///< of those given, the first so many, and the baseline
  int rounds = 0;
};
/// `launch_s`: what a launch of each finalist takes with everything about it, the best first; `baseline_s` the same of
/// the baseline, 0 if there is none. Rounds are saved first, down to `fewest_wanted`, then finalists from the last on,
/// then rounds down to `fewest`. Nothing if not even the best and the baseline fit.
struct FinalsNeed {
  std::vector<double> launch_s;
  double baseline_s = 0;
  int rounds = 0;
  int fewest_wanted = 0;
  int fewest = 0;
  int launches = 1;  ///< of each in a round
};
[[nodiscard]] std::optional<FinalsFit> fit_finals(const FinalsNeed& need, double allowed_s);
/// Seconds that so many finalists and rounds take.
[[nodiscard]] double finals_seconds(const FinalsNeed& need, const FinalsFit& fit);

/// Trials that a sweep makes at most, of how many problems.
struct PlannedWork {
  double trials = 0;
  double problems = 0;
};
/// Seconds that takes one device, from what sweeps of the same kernel on such a device took: their time from trial to
/// trial, in which compiling, verifying and measuring are, and what else they took for a problem, from starting to the
/// end of the finals. Nothing if there were none.
[[nodiscard]] std::optional<double> estimate_s(const PlannedWork& work, const TrialCost& cost);

/// Seconds that one problem's windows by another objective than time take in its finals, about; 0 by time.
[[nodiscard]] double objective_windows_s(const FinalsOptions& finals);

/// Contenders by another objective that are hoped for: the fastest, another and the baseline.
inline constexpr double kContendersByObjective = 3;

}  // namespace pascaline
