#include "tuner/probe/probe_sampler.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/util/statistics.hpp"
#include "tuner/monitor/governor.hpp"

namespace pascaline {
namespace {

using SamplerClock = std::chrono::steady_clock;

constexpr std::size_t kFewestSamples = 5;
constexpr std::size_t kMaxSamples = 100;
constexpr double kSteadySpread = 0.05;

// The middle 80 % of the samples, over their median.
double spread_of(std::vector<double> samples, double median) {
  std::sort(samples.begin(), samples.end());
  const auto last = static_cast<double>(samples.size() - 1);
  const double low = samples[static_cast<std::size_t>(std::floor(0.1 * last))];
  const double high = samples[static_cast<std::size_t>(std::ceil(0.9 * last))];
  return median > 0 ? (high - low) / median : 0;
}

}  // namespace

ProbeValue probe_value(ProbeQuantity quantity, std::span<const double> samples) {
  std::vector<Sample> counted;
  for (const double sample : samples) {
    Sample each;
    each.time_us = sample;
    counted.push_back(each);
  }
  const TimeSummary summary = summarize(counted);
  ProbeValue value;
  value.quantity = quantity;
  value.median = summary.median_us;
  value.low = summary.low_us;
  value.high = summary.high_us;
  value.samples = summary.count;
  value.spread = samples.empty() ? 0 : spread_of({samples.begin(), samples.end()}, summary.median_us);
  value.steady = value.spread <= kSteadySpread;
  return value;
}

ProbeSampler::ProbeSampler(Device& device, const std::atomic<bool>& stop, double seconds_each)
    : device_(device), stop_(stop), seconds_each_(seconds_each) {}

void ProbeSampler::look() {
  if (stop_) {
    throw ProbeStopped{};
  }
  const Sensors sensors = device_.read_sensors();
  throttled_ = throttled_ || (sensors.throttle_reasons.value_or(0) & (kPowerThrottleBits | kThermalThrottleBits)) != 0;
}

std::vector<ProbeValue> ProbeSampler::take(std::span<const ProbeQuantity> quantities,
                                           const std::function<std::vector<double>()>& one) {
  std::vector<std::vector<double>> samples(quantities.size());
  look();
  one();
  const auto begin = SamplerClock::now();
  const auto spent = [&] { return std::chrono::duration<double>(SamplerClock::now() - begin).count(); };
  for (std::size_t count = 0; count < kMaxSamples && (count < kFewestSamples || spent() < seconds_each_); ++count) {
    const std::vector<double> sample = one();
    look();
    for (std::size_t i = 0; i < quantities.size(); ++i) {
      samples[i].push_back(sample[i]);
    }
  }
  std::vector<ProbeValue> values;
  for (std::size_t i = 0; i < quantities.size(); ++i) {
    values.push_back(probe_value(quantities[i], samples[i]));
  }
  return values;
}

}  // namespace pascaline
