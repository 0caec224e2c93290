#pragma once

#include <optional>

#include "core/trial.hpp"

namespace pascaline {

/// By how much a winner is faster than its baseline, timed in turn with it, and how surely.
struct LogSpeedup {
  double value = 0;  ///< logarithm of the baseline's median over the winner's
  double error = 0;  ///< its standard error, by the intervals of both medians
  double z = 0;      ///< standard normal deviate of the test that compared their samples; above 0: it is faster
};

/// The standard normal deviate below which that much probability lies, within 8 of 0.
[[nodiscard]] double normal_deviate(double probability) noexcept;

/// Nothing where one of the two has fewer than 6 samples, whose interval is only their range. `confidence`: that the
/// winner is not slower, by the test of their samples.
[[nodiscard]] std::optional<LogSpeedup> log_speedup(const TimeSummary& winner, const TimeSummary& baseline,
                                                    double confidence);

/// The standard error that intervals and test give together: what the intervals say, or what a significant test of the
/// samples does, if that is less, as where times scatter so much that medians are known little (test-based limits: O.
/// S. Miettinen, Estimability and estimation in case-referent studies, American Journal of Epidemiology 103, 1976).
[[nodiscard]] double standard_error(const LogSpeedup& speedup) noexcept;

}  // namespace pascaline
