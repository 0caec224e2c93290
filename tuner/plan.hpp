#pragma once

#include <optional>
#include <span>

namespace pascaline {

/// Where the search for one problem stands.
struct SearchProgress {
  double count = 1;            ///< calls by the model
  double flops = 0;            ///< of one call
  double bytes = 0;            ///< one call must move at least
  double best_us = 0;          ///< 0: nothing usable yet
  double best_at_half_us = 0;  ///< when half of the trials were made; 0: nothing usable then
  int trials = 0;
  double spent_s = 0;  ///< of a device
};

/// What devices were seen to do: the highest rates any problem's best reached.
struct AttainedRates {
  double flops_per_us = 0;
  double bytes_per_us = 0;
};
[[nodiscard]] AttainedRates attained_rates(std::span<const SearchProgress> problems);

/// Microseconds of the model's time that a second more on this problem is expected to save: calls x time x the room
/// left (towards a tenth better than the best rates attained anywhere), no more than what the last doubling of its
/// trials brought, over the time that the next doubling takes. A problem without trials goes before all others, by its
/// work. The estimate treats a search as a record process: each doubling of trials improves the best by a like share.
[[nodiscard]] double expected_gain(const SearchProgress& problem, const AttainedRates& rates);

/// Seconds that one trial takes a sweep: the slower of compiling with `jobs` workers and measuring.
struct TrialEstimate {
  double seconds = 0;
  bool from_history = false;  ///< from trials of this kernel on this kind of device; else a guess
};
[[nodiscard]] TrialEstimate estimate_trial(std::optional<double> compile_ms, std::optional<double> measure_ms,
                                           std::size_t jobs);

}  // namespace pascaline
