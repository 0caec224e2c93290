#include "tuner/monitor/energy.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace pascaline {
namespace {

constexpr double kReadEveryUs = 20'000;
constexpr double kMaxLaunches = 5000;  // queued at once
constexpr int kMaxBatches = 10'000;
// Cards tell an average of up to a second, so what ran before is in the first readings.
constexpr double kSteadyForS = 0.5;
constexpr double kSteadyWithin = 0.01;
constexpr double kMaxWaitS = 2;
constexpr double kMaxPowerW = 3000;  // of one card
constexpr double kUsualWithin = 0.2;

struct PowerReading {
  double at_s = 0;
  double power_w = 0;
};

// What was launched between two readings.
struct Batch {
  double span_s = 0;
  double energy_j = 0;
};

// Energy of a batch: the mean of those that took about as long as most did. What takes longer had a pause, in which the
// machine was busy otherwise, and what comes after that less of its own.
double usual_energy_j(const std::vector<Batch>& batches) {
  std::vector<double> spans;
  for (const Batch& batch : batches) {
    spans.push_back(batch.span_s);
  }
  const auto middle = spans.begin() + static_cast<std::ptrdiff_t>((spans.size() - 1) / 2);
  std::nth_element(spans.begin(), middle, spans.end());
  const double usual_s = *middle;
  double sum = 0;
  int count = 0;
  for (const Batch& batch : batches) {
    if (std::abs(batch.span_s - usual_s) <= kUsualWithin * usual_s) {
      sum += batch.energy_j;
      ++count;
    }
  }
  if (2 * count >= static_cast<int>(batches.size())) {
    return sum / count;
  }
  double whole = 0;  // where nothing is usual
  for (const Batch& batch : batches) {
    whole += batch.energy_j;
  }
  return whole / static_cast<double>(batches.size());
}

struct PowerSpan {
  double sum_w = 0;
  int count = 0;
  bool changes = false;  // a reading that never does may be an old one
};

PowerSpan span_of(const std::vector<PowerReading>& readings, double from_s, double to_s) {
  PowerSpan span;
  std::optional<double> before;
  for (const PowerReading& reading : readings) {
    if (reading.at_s > from_s && reading.at_s <= to_s) {
      span.sum_w += reading.power_w;
      ++span.count;
      span.changes = span.changes || (before && *before != reading.power_w);
      before = reading.power_w;
    }
  }
  return span;
}

// Whether the later half of the last kSteadyForS reads as its earlier half does.
bool is_steady(const std::vector<PowerReading>& readings) {
  const double until_s = readings.back().at_s;
  if (until_s - readings.front().at_s < kSteadyForS) {
    return false;
  }
  const PowerSpan earlier = span_of(readings, until_s - kSteadyForS, until_s - kSteadyForS / 2);
  const PowerSpan later = span_of(readings, until_s - kSteadyForS / 2, until_s);
  if (!earlier.changes || !later.changes) {
    return false;
  }
  const double earlier_w = earlier.sum_w / earlier.count;
  return std::abs(later.sum_w / later.count - earlier_w) <= kSteadyWithin * earlier_w;
}

std::optional<double> power_w(DeviceMonitor& monitor) { return sane_power_w(monitor.read_sensors()); }

}  // namespace

std::optional<double> sane_power_w(const Sensors& sensors) {
  return sensors.power_w && *sensors.power_w > 0 && *sensors.power_w <= kMaxPowerW ? sensors.power_w : std::nullopt;
}

EnergyWindow measure_energy_window(DeviceMonitor& monitor, const TimedWork& work, double time_us, double window_ms) {
  Device& device = monitor.device();
  EnergyWindow window;
  if (!(window_ms > 0) || !power_w(monitor)) {
    return window;
  }
  const double begun_s = monitor.now_s();
  std::vector<PowerReading> readings;
  std::optional<double> begin_s;
  double read_us = 0;
  int batch = 0;  // the same throughout the window, so that what its ends cut off is the same too
  std::vector<Batch> batches;
  for (int i = 0; i < kMaxBatches; ++i) {
    // Read while the batch runs: between two readings lie as many launches as there are in one, and no pause.
    if (!begin_s) {
      const double batch_us = std::max(kReadEveryUs, 1.5 * read_us);
      batch = static_cast<int>(std::clamp(batch_us / std::max(time_us, 1e-3), 1.0, kMaxLaunches));
    }
    for (int launch = 0; launch < batch; ++launch) {
      work.launch();
    }
    const double queued_s = monitor.now_s();
    const std::optional<double> now_w = power_w(monitor);
    const double now_s = monitor.now_s();
    read_us = (now_s - queued_s) * 1e6;
    device.synchronize();
    if (!now_w) {
      break;
    }
    if (begin_s) {
      const PowerReading& last = readings.back();
      batches.push_back({now_s - last.at_s, 0.5 * (last.power_w + *now_w) * (now_s - last.at_s)});
    }
    readings.push_back({now_s, *now_w});
    if (!begin_s && (now_s >= begun_s + kMaxWaitS || is_steady(readings))) {
      begin_s = now_s;
    }
    if (begin_s && now_s >= *begin_s + window_ms / 1000) {
      window.whole = !batches.empty();
      break;
    }
  }
  if (!batches.empty()) {
    window.energy_mj = 1000 * usual_energy_j(batches) / batch;
    window.changed = span_of(readings, -std::numeric_limits<double>::infinity(), readings.back().at_s).changes;
  }
  return window;
}

}  // namespace pascaline
