#include "tuner/energy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace pascaline {
namespace {

constexpr double kReadEveryUs = 20'000;
constexpr double kMostLaunches = 5000;  // queued at once
constexpr int kMostBatches = 10'000;
// Of the window. Cards average their power over up to a second, so what ran before is in the first readings.
constexpr double kSteadyFor = 0.5;
constexpr double kSteadyWithin = 0.03;
constexpr double kMostWait = 4;

struct PowerReading {
  double at_s = 0;
  double power_w = 0;
};

// Whether the later half of the last `span_s` reads as its earlier half does.
bool is_steady(const std::vector<PowerReading>& readings, double span_s) {
  const double until_s = readings.back().at_s;
  std::array<double, 2> sums{};
  std::array<int, 2> counts{};
  for (auto reading = readings.rbegin(); reading != readings.rend(); ++reading) {
    const double ago_s = until_s - reading->at_s;
    if (ago_s >= span_s) {
      break;
    }
    const std::size_t half = ago_s < span_s / 2 ? 1 : 0;
    sums.at(half) += reading->power_w;
    ++counts.at(half);
  }
  if (counts[0] == 0 || counts[1] == 0 || until_s - readings.front().at_s < span_s) {
    return false;
  }
  const double earlier = sums[0] / counts[0];
  return std::abs(sums[1] / counts[1] - earlier) <= kSteadyWithin * earlier;
}

std::optional<double> power_w(Climate& climate) {
  const auto power = climate.read_sensors().power_w;
  return power && *power > 0 && std::isfinite(*power) ? power : std::nullopt;
}

}  // namespace

std::optional<double> measure_energy_mj(Climate& climate, TrialRunner::Ready& ready, double time_us, double window_ms) {
  Device& device = climate.device();
  if (!(window_ms > 0) || !power_w(climate)) {
    return std::nullopt;
  }
  const int batch = static_cast<int>(std::clamp(kReadEveryUs / std::max(time_us, 1e-3), 1.0, kMostLaunches));
  const double window_s = window_ms / 1000;
  const double latest_begin_s = climate.now_s() + kMostWait * window_s;
  std::vector<PowerReading> readings;
  std::optional<double> begin_s;
  double energy_j = 0;
  double launches = 0;
  for (int i = 0; i < kMostBatches; ++i) {
    for (int launch = 0; launch < batch; ++launch) {
      device.launch(ready.kernel, ready.geometry, ready.arguments.pointers());
    }
    // Read while the batch runs: between two readings lie as many launches as there are in one.
    const std::optional<double> now_w = power_w(climate);
    const double now_s = climate.now_s();
    device.synchronize();
    if (!now_w) {
      break;
    }
    if (begin_s) {
      const PowerReading& last = readings.back();
      energy_j += 0.5 * (last.power_w + *now_w) * (now_s - last.at_s);
      launches += batch;
    }
    readings.push_back({now_s, *now_w});
    if (!begin_s && (now_s >= latest_begin_s || is_steady(readings, kSteadyFor * window_s))) {
      begin_s = now_s;
    }
    if (begin_s && launches > 0 && now_s >= *begin_s + window_s) {
      break;
    }
  }
  return launches > 0 ? std::optional(1000 * energy_j / launches) : std::nullopt;
}

}  // namespace pascaline
