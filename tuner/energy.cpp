#include "tuner/energy.hpp"

#include <algorithm>
#include <cmath>

namespace pascaline {
namespace {

constexpr double kReadEveryUs = 20'000;
constexpr double kMostLaunches = 5000;  // queued at once
constexpr int kMostBatches = 10'000;

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
  const double begin_s = climate.now_s() + 0.2 * window_ms / 1000;
  const double end_s = begin_s + window_ms / 1000;
  std::optional<double> last_w;
  double last_s = 0;
  double energy_j = 0;
  double launches = 0;
  for (int i = 0; i < kMostBatches && (launches == 0 || last_s < end_s); ++i) {
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
    if (last_w) {
      energy_j += 0.5 * (*last_w + *now_w) * (now_s - last_s);
      launches += batch;
    }
    if (now_s >= begin_s) {
      last_w = now_w;
      last_s = now_s;
    }
  }
  return launches > 0 ? std::optional(1000 * energy_j / launches) : std::nullopt;
}

}  // namespace pascaline
