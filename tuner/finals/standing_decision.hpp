#pragma once

#include <optional>
#include <string>

#include "core/log_speedup.hpp"
#include "core/trial.hpp"

namespace pascaline {

/// What finals decided earlier for the same key (device, compiler and driver, kernel source, problem), by time.
struct StandingDecision {
  std::string config{};                   ///< text of the winner's configuration
  TimeSummary time{};                     ///< the winner's
  std::optional<TimeSummary> baseline{};  ///< of what it was compared with
  std::string baseline_config{};          ///< text of that configuration; empty where it is not known
  std::optional<double> canary_us{};      ///< the canary's time then, which tells the clock
  double confidence = 0.5;                ///< that it is not slower than the baseline
};

/// What the earlier finals tell of the winner and the baseline of today: nothing if they compared it with another
/// configuration. Where the card's clock was another one, as the canary's times `canary_us` (today's) and theirs tell,
/// it is less sure by as much: of two kernels timed in turn one may follow the clock and the other not.
[[nodiscard]] std::optional<LogSpeedup> earlier_speedup(const StandingDecision& standing,
                                                        const std::string& baseline_config,
                                                        const std::optional<double>& canary_us);

/// Probability that the winner is not slower than the baseline, by the test alone.
[[nodiscard]] double confidence_of(const LogSpeedup& speedup) noexcept;

/// Probability that the winner is not slower than the baseline, of two finals together: the mean of their speedups,
/// each weighed by its precision. That is what the intervals say, or what a significant test of the samples does, if
/// that is more, as where times scatter so much that medians are known little. Where the speedups differ by more than
/// their errors explain, the error of the mean grows as much (R. T. Birge, The Calculation of Errors by the Method of
/// Least Squares, Physical Review 40, 1932).
[[nodiscard]] double confidence_of_both(const LogSpeedup& earlier, const LogSpeedup& now) noexcept;

}  // namespace pascaline
