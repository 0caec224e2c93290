#include "tuner/finals/standing_decision.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace pascaline {
namespace {

constexpr double kSameClock = 0.02;  // as the governor tolerates

double probability_below(double deviate) noexcept { return 0.5 * std::erfc(-deviate / std::numbers::sqrt2); }

// One over the variance.
double precision(const LogSpeedup& speedup) noexcept { return std::pow(standard_error(speedup), -2); }

// With the SM clock at most one of two kernels' times changes, so their speedup does by no more than the clock.
LogSpeedup with_other_clock(const LogSpeedup& speedup, double log_clock) {
  const double of_test = speedup.z == 0 ? 0 : std::hypot(speedup.value / speedup.z, log_clock);
  return {speedup.value, std::hypot(speedup.error, log_clock), of_test > 0 ? speedup.value / of_test : 0};
}

}  // namespace

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
