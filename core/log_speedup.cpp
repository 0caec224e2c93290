#include "core/log_speedup.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

constexpr int kMinSamplesOfInterval = 6;
constexpr double kMinSpeedupError = 0.0005;  // medians of a coarse timer may agree by chance
constexpr double kLargestDeviate = 8;        // a double resolves no probability nearer to 1
constexpr int kHalvings = 60;
constexpr double kSignificantDeviate = 2.5;

double normal_below(double deviate) noexcept { return 0.5 * std::erfc(-deviate / std::numbers::sqrt2); }

}  // namespace

double normal_deviate(double probability) noexcept {
  double low = -kLargestDeviate;
  double high = kLargestDeviate;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (normal_below(middle) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::optional<LogSpeedup> log_speedup(const TimeSummary& winner, const TimeSummary& baseline, double confidence) {
  if (std::min(winner.count, baseline.count) < kMinSamplesOfInterval || !(winner.median_us > 0) ||
      !(baseline.median_us > 0)) {
    return std::nullopt;
  }
  const double error = std::hypot(relative_half_width(winner), relative_half_width(baseline)) / kErrorsOf95;
  return LogSpeedup{std::log(baseline.median_us / winner.median_us), std::max(error, kMinSpeedupError),
                    normal_deviate(confidence)};
}

double standard_error(const LogSpeedup& speedup) noexcept {
  const double of_test =
      std::abs(speedup.z) >= kSignificantDeviate ? std::abs(speedup.value / speedup.z) : speedup.error;
  return std::max(kMinSpeedupError, std::min(speedup.error, of_test));
}

}  // namespace pascaline
