#pragma once

#include <cstddef>
#include <vector>

#include "tuner/simulation/sweep_recording.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline {

/// A winner in a sweep of a recording.
struct TimedDecision {
  double at_s = 0;         ///< of the sweep
  std::size_t search = 0;  ///< index among the recording's
  double time_us = 0;      ///< the winner's
};

/// Microseconds of the model's time that decisions saved of a search, times the seconds until `limit_s`: the area under
/// the curve of what it has gained. Until the first decision the default runs.
[[nodiscard]] double saved_area(const SweepRecording& recording, const std::vector<TimedDecision>& decisions,
                                double limit_s, std::size_t search);
/// The sum over all searches.
[[nodiscard]] double saved_area(const SweepRecording& recording, const std::vector<TimedDecision>& decisions,
                                double limit_s);

struct PlayedSweep {
  std::vector<TimedDecision> decisions;  ///< in order of time
  SweepSummary summary;
};
/// Runs the real sweep with a time limit on a virtual clock. Every step has its recorded duration and result. Each
/// search proposes its recorded candidates in their order; no searcher runs. Throws as `run_sweep`.
[[nodiscard]] PlayedSweep play(const SweepRecording& recording, double limit_s);

/// The next candidates of a search: preparation, unless the device has it already; their builds, side by side by the
/// workers as far ahead as these get; their trials; and finals.
struct OrderedAction {
  std::size_t search = 0;
  std::size_t until = 0;  ///< number of its candidates that are tried then
};
/// The decisions of actions, one after the other.
[[nodiscard]] std::vector<TimedDecision> carry_out(const SweepRecording& recording,
                                                   const std::vector<OrderedAction>& actions);

/// The order of actions that knows every outcome: of all that end before the limit it takes the one that saves most per
/// second.
///
/// On one device this minimises the sum of each saving times its time, hence maximises the area, up to the last
/// action: a search's best ratios fall from one action to the next (they are the lower convex hull of its model time
/// over cost), and of chains of jobs the one whose next part has the best ratio of weight to length comes first
/// (Sidney's decomposition). Preparation again and waits for builds, which depend on the order, make it a close bound.
[[nodiscard]] std::vector<TimedDecision> clairvoyant_order(const SweepRecording& recording, double limit_s);
/// The order from the fastest default to the slowest, each with an equal share of the time that is left.
[[nodiscard]] std::vector<TimedDecision> cheapest_first_order(const SweepRecording& recording, double limit_s);

}  // namespace pascaline
