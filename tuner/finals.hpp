#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "core/trial.hpp"
#include "tuner/trial_runner.hpp"

namespace pascaline {

/// How finalists are compared.
struct FinalsOptions {
  int rounds = 40;           ///< at most; each finalist is timed once a round, in turn, so that drift touches all alike
  int min_rounds = 10;       ///< before the first look at the times
  int rounds_per_look = 5;   ///< from one look to the next
  int launches = 3;          ///< timed launches a finalist a round
  double p_value = 0.01;     ///< two-sided, of all looks together; above it a difference is a tie
  double tie_width = 0.005;  ///< relative: medians known this well and no farther apart are a tie without more rounds
  double energy_window_ms = 500;  ///< of the run that an energy is taken from; 0: no energy
};

/// What finals tell while they run; any function may be empty.
struct FinalsEvents {
  /// Whenever another finalist is on the device: the one to blame, by its index among those given.
  std::function<void(std::size_t finalist)> running;
  std::function<void(int rounds)> round;  ///< after each round, with how many there were
};

/// What the finals decided.
struct FinalsResult {
  std::vector<Trial> trials;            ///< one a finalist that still ran, in the order given
  std::size_t winner = 0;               ///< index into trials
  std::optional<TimeSummary> baseline;  ///< of the default, if it was among them
  double confidence = 0.5;              ///< that the winner is not slower than the default; 0.5 if it is the default
  std::vector<Trial> failed;            ///< finalists that did not run any more, with the reason
  bool tie = false;                     ///< others are not significantly slower than the fastest; a rule decided
  int rounds = 0;                       ///< that were undisturbed
  bool gave_up = false;  ///< the card did not become fit: nothing is decided, and none of it must be stored
};

/// Re-times finalists interleaved until one is significantly the fastest or a tie is certain, decides
/// (`decide_finals`), and then takes the energy of the winner and the default. Finalists that fail now are left out and
/// the finals begin anew; nothing if none is left or the device is lost.
[[nodiscard]] std::optional<FinalsResult> run_finals(TrialRunner& runner,
                                                     const std::vector<std::pair<Config, Binary>>& finalists,
                                                     const FinalsOptions& options, const FinalsEvents& events = {});

/// Decides by the Mann-Whitney test, its p-value split over the looks (Bonferroni). The tie set is the finalist with
/// the lowest median and all that are not significantly slower. If the default is in it, the default wins. Else the
/// first of it by the configuration's text does, of those significantly faster than the default.
void decide_finals(FinalsResult& result, const FinalsOptions& options);

/// Whether more rounds would change nothing: the tie set has one member, or all its medians are known and the same
/// within `tie_width`.
[[nodiscard]] bool finals_are_settled(const FinalsResult& result, const FinalsOptions& options);

/// Whether the times are looked at after that many rounds.
[[nodiscard]] bool finals_look_after(int rounds, const FinalsOptions& options);

}  // namespace pascaline
