#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "core/objective.hpp"
#include "tuner/finals/known_energy.hpp"
#include "tuner/finals/standing_decision.hpp"

namespace pascaline {

/// After which rounds a comparison looks at what it has so far: it may be over then, and every look has its share of
/// the p-value (Bonferroni).
struct Looks {
  int first = 1;
  int last = 1;   ///< the comparison is over after so many rounds
  int every = 1;  ///< rounds from one look to the next

  [[nodiscard]] bool due_after(int rounds) const {
    const int begin = std::min(first, last);
    return rounds >= last || (rounds >= begin && (rounds - begin) % std::max(1, every) == 0);
  }
  [[nodiscard]] int count() const {
    const int step = std::max(1, every);
    return 1 + std::max(0, last - first + step - 1) / step;
  }
};

/// How finalists are compared by another objective than time.
struct ObjectiveOptions {
  Objective objective = Objective::time;
  double contender_factor = 1.5;  ///< only finalists up to so many times as slow as the fastest, and the baseline
  int min_rounds = 3;             ///< each contender is measured once a round, in turn, so that drift touches all alike
  int max_rounds = 24;            ///< if it is not clear before
  int rounds_per_look = 3;        ///< from the first look, after `min_rounds`, to the next
  int rounds_of_all = 6;        ///< of all contenders that were not shown to be worse; then the best few continue alone
  double p_value = 0.01;        ///< two-sided, of all looks and contenders together
  double tie_width = 0.005;     ///< relative: a smaller difference is never called one
  double sustain_first_s = 60;  ///< until the card is steady, in the first window of sustained work, at most
  double sustain_again_s = 20;  ///< the same in later ones, which find the card warm
  double sustain_window_s = 2;  ///< of steady work that is timed
  std::optional<double> max_temperature_c{};  ///< of the user: work that warms the card beyond it is not sustained

  [[nodiscard]] Looks looks() const { return {min_rounds, max_rounds, rounds_per_look}; }
};

/// How finalists are compared.
struct FinalsOptions {
  int rounds = 40;           ///< at most; each finalist is timed once a round, in turn, so that drift touches all alike
  int min_rounds = 10;       ///< before the first look at the times
  int rounds_per_look = 5;   ///< from one look to the next
  int launches = 3;          ///< timed launches a finalist a round
  double p_value = 0.01;     ///< two-sided, of all looks together; above it a difference is a tie
  double tie_width = 0.005;  ///< relative: medians known this well and no farther apart are a tie without more rounds
  double energy_window_ms = 500;  ///< of the run that an energy is taken from; 0: no energy
  /// For a winner by time alone energies, which take some seconds, are information: a sweep takes them where the search
  /// took a device so many seconds. A command has no option for it: another objective takes energies in any case.
  double energy_after_search_s = 20;
  ObjectiveOptions objective{};  ///< what else than time they are compared by; time: nothing else
  /// Text of the configuration that replaces the default where that is not usable; empty: none does.
  std::string stand_in{};
  std::optional<StandingDecision> standing{};  ///< of earlier finals, of a configuration that is a finalist again
  std::optional<KnownEnergies> energies{};     ///< that earlier finals of the same run measured

  [[nodiscard]] Looks looks() const { return {min_rounds, rounds, rounds_per_look}; }
};

/// Fewest rounds that finals decide by: with fewer no difference could be significant.
inline constexpr int kMinFinalsRounds = 2;

}  // namespace pascaline
