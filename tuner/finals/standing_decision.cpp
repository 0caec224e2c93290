#include "tuner/finals/standing_decision.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

constexpr int kFewestOfInterval = 6;
constexpr double kErrorsOfHalfInterval = 1.96;
constexpr double kMinSpeedupError = 0.0005;  // medians of a coarse timer may agree by chance
constexpr double kSameClock = 0.02;          // as the governor tolerates
constexpr double kLargestDeviate = 8;        // what a double can tell of a probability next to 1
constexpr int kHalvings = 60;

constexpr double kSignificant = 2.5;  // deviates

double probability_below(double deviate) noexcept { return 0.5 * std::erfc(-deviate / std::numbers::sqrt2); }

// One over the variance.
double precision(const LogSpeedup& speedup) noexcept {
  const double of_test = std::abs(speedup.z) >= kSignificant ? std::abs(speedup.value / speedup.z) : speedup.error;
  const double error = std::max(kMinSpeedupError, std::min(speedup.error, of_test));
  return 1 / (error * error);
}

// With the SM clock at most one of two kernels' times changes, so their speedup does by no more than the clock.
LogSpeedup with_other_clock(const LogSpeedup& speedup, double log_clock) {
  const double of_test = speedup.z == 0 ? 0 : std::hypot(speedup.value / speedup.z, log_clock);
  return {speedup.value, std::hypot(speedup.error, log_clock), of_test > 0 ? speedup.value / of_test : 0};
}

}  // namespace

double normal_deviate(double probability) noexcept {
  double low = -kLargestDeviate;
  double high = kLargestDeviate;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (probability_below(middle) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::optional<LogSpeedup> log_speedup(const TimeSummary& winner, const TimeSummary& baseline, double confidence) {
  if (std::min(winner.count, baseline.count) < kFewestOfInterval || !(winner.median_us > 0) ||
      !(baseline.median_us > 0)) {
    return std::nullopt;
  }
  const double error = std::hypot(relative_half_width(winner), relative_half_width(baseline)) / kErrorsOfHalfInterval;
  return LogSpeedup{std::log(baseline.median_us / winner.median_us), std::max(error, kMinSpeedupError),
                    normal_deviate(confidence)};
}

std::optional<LogSpeedup> earlier_speedup(const StandingDecision& standing, const std::string& baseline_config,
                                          const std::optional<double>& canary_us) {
  if (!standing.baseline || standing.baseline_config != baseline_config) {
    return std::nullopt;
  }
  const std::optional<LogSpeedup> speedup = log_speedup(standing.time, *standing.baseline, standing.confidence);
  const bool other_clock = standing.canary_us && canary_us && *standing.canary_us > 0 && *canary_us > 0 &&
                           std::abs(*canary_us - *standing.canary_us) > kSameClock * *standing.canary_us;
  return speedup && other_clock ? with_other_clock(*speedup, std::log(*canary_us / *standing.canary_us)) : speedup;
}

double confidence_of(const LogSpeedup& speedup) noexcept { return probability_below(speedup.z); }

double confidence_of_both(const LogSpeedup& earlier, const LogSpeedup& now) noexcept {
  const double of_earlier = precision(earlier);
  const double of_now = precision(now);
  const double mean = (of_earlier * earlier.value + of_now * now.value) / (of_earlier + of_now);
  const double apart = std::abs(earlier.value - now.value) / std::hypot(earlier.error, now.error);
  return probability_below(mean * std::sqrt(of_earlier + of_now) / std::max(1.0, apart));
}

}  // namespace pascaline
