#include "tuner/monitor/device_monitor.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace pascaline {
namespace {

constexpr double kReuseSeconds = 0.010;
constexpr double kReuseFactor = 10;  // readings cost a tenth of the time at most
constexpr double kLookEverySeconds = 0.25;
constexpr double kPreheatLookSeconds = 0.1;
constexpr double kWakeUpSeconds = 0.005;  // of work, for an idle card's clock to rise
constexpr int kCanaries = 3;
constexpr int kMaxBurned = 2000;  // of the canary between two looks, should time stand still
constexpr double kSteadyEnough = 0.005;

double steady_now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

DeviceMonitor::DeviceMonitor(Device& device, GovernorOptions options, DeviceMonitorHooks hooks)
    : device_(device), hooks_(std::move(hooks)), passive_(options.passive), governor_(options) {
  if (!hooks_.now_s) {
    hooks_.now_s = steady_now_s;
  }
  if (!hooks_.sleep_s) {
    hooks_.sleep_s = [](double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); };
  }
  if (hooks_.telemetry) {
    teller_ = std::thread([this] { tell_until_closed(); });
  }
}

DeviceMonitor::~DeviceMonitor() {
  if (teller_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    closing_.notify_all();
    teller_.join();
  }
}

bool DeviceMonitor::preheat() {
  const double begin_s = now_s();
  const double waited_before_s = waited_s_;
  while (state() == GovernorState::preheating && !stopped()) {
    canary();
    if (state() == GovernorState::preheating) {
      burn(kPreheatLookSeconds);
    }
  }
  waited_s_ = waited_before_s + now_s() - begin_s;
  return state() != GovernorState::preheating && wait_until_fit();
}

SampleMark DeviceMonitor::check() {
  if (!reading_is_fresh()) {
    observe(std::nullopt);
  }
  const std::lock_guard lock(mutex_);
  return governor_.mark();
}

std::optional<double> DeviceMonitor::canary() {
  if (passive_) {
    return std::nullopt;
  }
  std::optional<double> steady_us;
  {
    const std::lock_guard lock(mutex_);
    steady_us = governor_.steady_canary_us();
  }
  double best_us = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kCanaries; ++i) {
    best_us = std::min(best_us, time_canary_us());
    if (steady_us && std::abs(best_us - *steady_us) <= kSteadyEnough * *steady_us) {
      break;
    }
  }
  canary_us_ = best_us;
  canary_at_s_ = now_s();
  observe(best_us);
  return best_us;
}

bool DeviceMonitor::wait_until_fit() {
  if (state() == GovernorState::preheating) {
    return preheat();
  }
  if (may_measure()) {
    return true;
  }
  const double begin_s = now_s();
  const bool fit = wait();
  waited_s_ += now_s() - begin_s;
  return fit;
}

// The clock of a card that idles is low and says nothing, so each look comes after some work.
bool DeviceMonitor::wait() {
  bool told = false;
  bool fit = false;
  while (!gave_up() && !stopped()) {
    burn(kWakeUpSeconds);
    read_at_s_.reset();
    canary();
    if ((fit = may_measure())) {
      break;
    }
    if (!told && hooks_.pause) {
      hooks_.pause(true, reason());
      told = true;
    }
    hooks_.sleep_s(kLookEverySeconds);
  }
  if (told) {
    hooks_.pause(false, {});
  }
  return fit;
}

void DeviceMonitor::burn(double seconds) {
  const double until_s = now_s() + seconds;
  for (int i = 0; i < kMaxBurned && now_s() < until_s; ++i) {
    std::ignore = device_.time_canary_us();
  }
}

double DeviceMonitor::time_canary_us() {
  const double real_us = device_.time_canary_us();
  if (!hooks_.trace) {
    return real_us;
  }
  const SensorTrace::Moment scripted = moment();
  return scripted.canary_us.value_or(real_us) * scripted.canary_scale;
}

SensorTrace::Moment DeviceMonitor::moment() {
  const double at_s = now_s();
  const std::lock_guard lock(mutex_);
  if (!trace_began_s_) {
    trace_began_s_ = at_s;
  }
  return hooks_.trace->at(std::max(0.0, at_s - *trace_began_s_));
}

Sensors DeviceMonitor::read_sensors() { return hooks_.trace ? moment().sensors : device_.read_sensors(); }

bool DeviceMonitor::reading_is_fresh() const {
  return read_at_s_ && now_s() - *read_at_s_ < std::max(kReuseSeconds, kReuseFactor * reading_s_);
}

void DeviceMonitor::observe(std::optional<double> canary_us) {
  if (!reading_is_fresh()) {
    const double begin_s = now_s();
    sensors_ = read_sensors();
    read_at_s_ = now_s();
    reading_s_ = *read_at_s_ - begin_s;
  }
  const double at_s = now_s();
  const std::lock_guard lock(mutex_);
  governor_.observe(at_s, sensors_, canary_us);
  untold_canary_us_ = canary_us ? canary_us : untold_canary_us_;
}

double DeviceMonitor::canary_age_s() const {
  return canary_us_ ? now_s() - canary_at_s_ : std::numeric_limits<double>::infinity();
}

bool DeviceMonitor::canary_drifted() const {
  const std::lock_guard lock(mutex_);
  return governor_.canary_drifted();
}

GovernorState DeviceMonitor::state() const {
  const std::lock_guard lock(mutex_);
  return governor_.state();
}

std::string DeviceMonitor::reason() const {
  const std::lock_guard lock(mutex_);
  return governor_.reason();
}

std::string DeviceMonitor::remedy() const {
  const std::lock_guard lock(mutex_);
  return governor_.remedy();
}

double DeviceMonitor::scale_of(double canary_us) const {
  const std::lock_guard lock(mutex_);
  return governor_.scale_of(canary_us);
}

void DeviceMonitor::tell() {
  MonitorReading reading;
  reading.sensors = read_sensors();
  reading.unix_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  {
    const std::lock_guard lock(mutex_);
    reading.state = governor_.state();
    reading.reason = governor_.reason();
    reading.canary_us = untold_canary_us_;
    untold_canary_us_.reset();
  }
  hooks_.telemetry(reading);
}

void DeviceMonitor::tell_until_closed() {
  const auto period = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(hooks_.telemetry_period_s));
  auto next = std::chrono::steady_clock::now();
  for (;;) {
    tell();
    next = std::max(next + period, std::chrono::steady_clock::now());
    std::unique_lock lock(mutex_);
    if (closing_.wait_until(lock, next, [this] { return closed_; })) {
      return;
    }
  }
}

}  // namespace pascaline
