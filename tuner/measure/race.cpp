#include "tuner/measure/race.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

// What configurations before say of the next one's scatter counts as much as so many samples of its own.
constexpr double kMaxPriorDegrees = 12;
constexpr double kResolutionUs = 0.5;
constexpr double kMadToDeviation = 1.4826;  // of a normal distribution
// The standard error of a median over that of a mean, of many normal samples; of few it is less.
const double kMedianError = std::sqrt(std::numbers::pi / 2);

std::vector<double> log_times(std::span<const Sample> samples) {
  std::vector<double> logs;
  for (const Sample& sample : samples) {
    if (sample.counted()) {
      logs.push_back(std::log(sample.time_us));
    }
  }
  return logs;
}

// P(T > t) of Student's t by Wallace's normal approximation (D. L. Wallace, Bounds on normal approximations to
// Student's and the chi-square distributions, Annals of Mathematical Statistics 30, 1959), for t >= 0.
double upper_tail(double t, double degrees) {
  const double z = (8 * degrees + 1) / (8 * degrees + 3) * std::sqrt(degrees * std::log1p(t * t / degrees));
  return std::erfc(z / std::numbers::sqrt2) / 2;
}

}  // namespace

void NoiseScale::add(std::span<const Sample> samples) {
  const std::vector<double> logs = log_times(samples);
  if (logs.size() < 3) {
    return;
  }
  const double middle = median(logs);
  std::vector<double> deviations(logs.size());
  std::transform(logs.begin(), logs.end(), deviations.begin(), [&](double value) { return std::abs(value - middle); });
  const double deviation = kMadToDeviation * median(std::move(deviations));
  const auto degrees = static_cast<double>(logs.size() - 1);
  if (std::isfinite(deviation)) {
    weighted_ += degrees * deviation * deviation;
    degrees_ += degrees;
  }
}

Race::Race(double best_us, double error, double margin, const NoiseScale& noise)
    : error_(best_us > 0 ? error : 0),
      prior_variance_(noise.variance()),
      prior_degrees_(std::min(kMaxPriorDegrees, noise.degrees_of_freedom())) {
  if (best_us > 0) {
    log_margin_ = std::log1p(margin);
    log_best_ = std::log(best_us) + log_margin_;
  }
}

bool Race::lost(std::span<const Sample> samples, double clock_scale) const {
  if (!(error_ > 0)) {
    return false;
  }
  const std::vector<double> logs = log_times(samples);
  const auto count = static_cast<double>(logs.size());
  if (count < kMinSamples) {
    return false;
  }
  const double middle = median(logs);
  const double log_scale = std::log(clock_scale);
  const double slower = middle + log_scale - log_best_;
  const double fastest = *std::min_element(logs.begin(), logs.end()) + log_scale;
  if (!(slower > 0) || !(fastest > log_best_ - log_margin_)) {
    return false;
  }
  double squares = prior_degrees_ * prior_variance_;
  for (const double value : logs) {
    squares += (value - middle) * (value - middle);
  }
  const double degrees = prior_degrees_ + count - 1;
  const double resolution = kResolutionUs / std::exp(middle);
  const double variance = squares / degrees + resolution * resolution / 12;
  const double t = slower / (kMedianError * std::sqrt(variance / count));
  const double look = count - kMinSamples + 1;
  return upper_tail(t, degrees) <= error_ * 6 / (std::numbers::pi * std::numbers::pi * look * look);
}

}  // namespace pascaline
