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

/// The earlier finals' speedup of the winner over today's baseline; nothing if they compared it with another
/// configuration. If the card's clock differed, by the canary's time then and today (`canary_us`), the uncertainty
/// grows by that difference: of two kernels timed in turn, one may follow the clock and the other not.
[[nodiscard]] std::optional<LogSpeedup> earlier_speedup(const StandingDecision& standing,
                                                        const std::string& baseline_config,
                                                        const std::optional<double>& canary_us);

/// Probability that the winner is not slower than the baseline, by the test alone.
[[nodiscard]] double confidence_of(const LogSpeedup& speedup) noexcept;

/// Probability that the winner is not slower than the baseline, of two finals together: the mean of their speedups,
/// each weighted by its precision. The precision follows from the intervals, or from a significant test of the samples
/// if that gives more, as it does where scattered times leave the medians imprecise. If the speedups differ by more
/// than their errors explain, the error of the mean grows to match (R. T. Birge, The Calculation of Errors by the
/// Method of Least Squares, Physical Review 40, 1932).
[[nodiscard]] double confidence_of_both(const LogSpeedup& earlier, const LogSpeedup& now) noexcept;

}  // namespace pascaline
