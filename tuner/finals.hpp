#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/trial.hpp"
#include "tuner/trial_runner.hpp"

namespace pascaline {

/// How finalists are compared.
struct FinalsOptions {
  int rounds = 15;        ///< each finalist is timed once a round, in turn, so that drift touches all alike
  int launches = 3;       ///< timed launches a finalist a round
  double p_value = 0.05;  ///< two-sided; above it a difference from the default is a tie
};

/// What the finals decided.
struct FinalsResult {
  std::vector<Trial> trials;            ///< one a finalist that still ran, in the order given
  std::size_t winner = 0;               ///< index into trials
  std::optional<TimeSummary> baseline;  ///< of the default, if it was among them
  double confidence = 0.5;              ///< that the winner is not slower than the default; 0.5 if it is the default
};

/// Re-times finalists interleaved and decides by the Mann-Whitney test against the default: a finalist must be
/// significantly faster to replace it. Finalists that fail now are left out; nothing if none is left.
[[nodiscard]] std::optional<FinalsResult> run_finals(TrialRunner& runner,
                                                     const std::vector<std::pair<Config, Binary>>& finalists,
                                                     const FinalsOptions& options);

/// The decision alone, on samples in the order they were taken.
void decide_finals(FinalsResult& result, const FinalsOptions& options);

}  // namespace pascaline
