#include "tuner/sweep/standing_decision.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

constexpr int kFewestOfInterval = 6;
constexpr double kErrorsOfHalfInterval = 1.96;
constexpr double kLeastSpeedupError = 0.0005;  // medians of a coarse timer may agree by chance
constexpr double kSameClock = 0.02;            // as the governor tolerates

}  // namespace

std::optional<LogSpeedup> log_speedup(const TimeSummary& winner, const TimeSummary& baseline) {
  if (std::min(winner.count, baseline.count) < kFewestOfInterval || !(winner.median_us > 0) ||
      !(baseline.median_us > 0)) {
    return std::nullopt;
  }
  const double error = std::hypot(relative_half_width(winner), relative_half_width(baseline)) / kErrorsOfHalfInterval;
  return LogSpeedup{std::log(baseline.median_us / winner.median_us), std::max(error, kLeastSpeedupError)};
}

std::optional<LogSpeedup> earlier_speedup(const StandingDecision& standing, const std::string& baseline_config,
                                          const std::optional<double>& canary_us) {
  const bool other_clock =
      standing.canary_us && canary_us && std::abs(*canary_us - *standing.canary_us) > kSameClock * *standing.canary_us;
  if (!standing.baseline || standing.baseline_config != baseline_config || other_clock) {
    return std::nullopt;
  }
  return log_speedup(standing.time, *standing.baseline);
}

double confidence_of_both(const LogSpeedup& earlier, const LogSpeedup& now) noexcept {
  const double of_earlier = 1 / (earlier.error * earlier.error);
  const double of_now = 1 / (now.error * now.error);
  const double mean = (of_earlier * earlier.value + of_now * now.value) / (of_earlier + of_now);
  const double apart = (earlier.value - now.value) / std::hypot(earlier.error, now.error);
  const double error = std::max(1.0, std::abs(apart)) / std::sqrt(of_earlier + of_now);
  return 0.5 * std::erfc(-mean / error / std::numbers::sqrt2);
}

}  // namespace pascaline
