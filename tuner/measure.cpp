#include "tuner/measure.hpp"

#include <algorithm>
#include <chrono>

#include "core/statistics.hpp"

namespace pascaline {
namespace {

constexpr int kAbortAfter = 3;

bool hopeless(const std::vector<Sample>& samples, const MeasureOptions& options, double best_us) {
  if (!(options.abort_factor > 0) || !(best_us > 0) || samples.size() != kAbortAfter) {
    return false;
  }
  const auto fastest = std::min_element(samples.begin(), samples.end(),
                                        [](const Sample& a, const Sample& b) { return a.time_us < b.time_us; });
  return fastest->time_us > options.abort_factor * best_us;
}

}  // namespace

std::vector<Sample> measure(Device& device, const Kernel& kernel, const Geometry& geometry,
                            std::span<void* const> arguments, const MeasureOptions& options, double best_us) {
  for (int i = 0; i < options.warm_up; ++i) {
    device.launch(kernel, geometry, arguments);
  }
  device.synchronize();
  std::vector<Sample> samples;
  const auto start = std::chrono::steady_clock::now();
  while (static_cast<int>(samples.size()) < options.max_samples) {
    Sample sample;
    sample.time_us = device.time_launch_us(kernel, geometry, arguments, options.cold_cache);
    samples.push_back(sample);
    const double spent_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const bool enough = static_cast<int>(samples.size()) >= options.min_samples;
    if (hopeless(samples, options, best_us) || (samples.size() >= kAbortAfter && spent_ms > options.budget_ms)) {
      break;
    }
    if (enough && relative_half_width(summarize(samples)) <= options.target_half_width) {
      break;
    }
  }
  const Sensors sensors = device.read_sensors();
  samples.back().temperature_c = sensors.temperature_c;
  samples.back().sm_clock_mhz = sensors.sm_clock_mhz;
  return samples;
}

}  // namespace pascaline
