#include "runtime/thermal/thermal_watcher.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>

#include "runtime/machine/machine_state.hpp"

namespace pascaline {

ThermalWatcher::ThermalWatcher(Device& device, const ThermalThresholds& thresholds, ThermalSources sources,
                               std::atomic<std::uint8_t>& cell) noexcept
    : device_(device), sources_(std::move(sources)), cell_(cell), monitor_(thresholds) {
  try {
    if (!sources_.now_s) {
      sources_.now_s = [] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
      };
    }
    reads_processor_ = is_laptop(sources_.root);
    thread_ = std::thread([this] { watch(); });
  } catch (const std::exception&) {
    return;  // no thread, no memory: nothing is watched
  }
}

ThermalWatcher::~ThermalWatcher() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    closing_.notify_all();
    thread_.join();
  }
  cell_.store(static_cast<std::uint8_t>(ThermalState::cool), std::memory_order_relaxed);
}

ThermalSnapshot ThermalWatcher::snapshot() const {
  const std::lock_guard lock(mutex_);
  return {monitor_.state(), monitor_.switches(), monitor_.reason(), last_, readings_};
}

std::vector<ThermalEvent> ThermalWatcher::take_events() {
  const std::lock_guard lock(mutex_);
  return monitor_.take_events();
}

ThermalReading ThermalWatcher::read(double at_s) {
  ThermalReading reading;
  if (sources_.trace) {
    trace_began_s_ = trace_began_s_ ? trace_began_s_ : at_s;
    const SensorTrace::Moment moment = sources_.trace->at(std::max(0.0, at_s - *trace_began_s_));
    return {moment.sensors, moment.processor_c, moment.processor_critical_c};
  }
  reading.card = device_.read_sensors();
  if (const auto processor = reads_processor_ ? processor_temperature(sources_.root) : std::nullopt) {
    reading.processor_c = processor->temperature_c;
    reading.processor_critical_c = processor->critical_c;
  }
  return reading;
}

void ThermalWatcher::look() {
  const double at_s = sources_.now_s();
  ThermalReading reading;
  try {
    reading = read(at_s);
  } catch (const std::exception&) {
    reading = {};
  }
  const std::lock_guard lock(mutex_);
  const ThermalState state = monitor_.observe(at_s, reading);
  last_ = reading;
  ++readings_;
  cell_.store(static_cast<std::uint8_t>(state), std::memory_order_relaxed);
}

void ThermalWatcher::watch() noexcept {
  const std::chrono::duration<double> period(sources_.period_s);
  for (;;) {
    try {
      look();
    } catch (const std::exception&) {
      // As a reading that is missing: the next one is as good.
    }
    std::unique_lock lock(mutex_);
    if (closing_.wait_for(lock, period, [this] { return closed_; })) {
      return;
    }
  }
}

}  // namespace pascaline
