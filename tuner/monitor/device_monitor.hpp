#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "runtime/device/device.hpp"
#include "runtime/thermal/sensor_trace.hpp"
#include "tuner/monitor/governor.hpp"

namespace pascaline {

/// A look at the card for the record.
struct MonitorReading {
  std::int64_t unix_ms = 0;
  Sensors sensors;
  GovernorState state = GovernorState::measuring;
  std::string reason;               ///< why it waits, for people; empty while measuring
  std::optional<double> canary_us;  ///< if the canary was timed since the reading before
};

/// What a DeviceMonitor asks and tells; any function may be empty.
struct DeviceMonitorHooks {
  std::optional<SensorTrace> trace;  ///< read instead of the device's sensors; it begins with the first reading
  std::function<bool()> stop;        ///< whether waiting is to end; asked at least every quarter of a second
  /// When a wait begins, with its reason, and when it is over. Not called for a wait of some milliseconds.
  std::function<void(bool waits, const std::string& reason)> pause;
  /// Gets a reading every `telemetry_period_s`, on a thread of its own, whatever the measuring does; must not throw.
  std::function<void(const MonitorReading&)> telemetry;
  double telemetry_period_s = 0.25;
  std::function<double()> now_s;                ///< a clock that never steps back; empty: the system's
  std::function<void(double seconds)> sleep_s;  ///< empty: the system's
};

/// What surrounds the measuring: reads the sensors, times the canary, asks the governor, waits. One thread uses it.
class DeviceMonitor {
 public:
  /// `device` must outlive it. Telemetry, if wanted, begins now and ends with the object.
  DeviceMonitor(Device& device, GovernorOptions options, DeviceMonitorHooks hooks = {});
  DeviceMonitor(const DeviceMonitor&) = delete;
  DeviceMonitor& operator=(const DeviceMonitor&) = delete;
  ~DeviceMonitor();

  /// Has the device work until the governor finds it steady; returns at once where that is over or not wanted. False
  /// if it is not fit then: the governor gave up, or the stop hook said so. Throws what Device::time_canary_us throws.
  bool preheat();

  /// The verdict on a sample just taken. Reads the sensors if the last reading is older than 10 ms, or than ten times
  /// what it took.
  SampleMark check();

  /// Times the canary (the best of three, or one that is as when steady) and shows it to the governor with the
  /// sensors, read as by `check`. Nothing where the governor is passive. Throws what Device::time_canary_us throws.
  std::optional<double> canary();

  /// Waits until the governor lets measuring go on, looking every quarter of a second. False if it gave up, the
  /// time was up or the stop hook said so. Throws what Device::time_canary_us throws.
  bool wait_until_fit();

  /// A reading of the sensors that the governor does not see.
  [[nodiscard]] Sensors read_sensors();
  /// The reading behind the last `check` or `canary`.
  [[nodiscard]] const Sensors& last_sensors() const noexcept { return sensors_; }
  /// The last canary's time and the seconds since; nothing if there was none.
  [[nodiscard]] std::optional<double> last_canary_us() const noexcept { return canary_us_; }
  [[nodiscard]] double canary_age_s() const;
  /// Whether the last canary was off.
  [[nodiscard]] bool canary_drifted() const;

  [[nodiscard]] bool passive() const noexcept { return passive_; }
  [[nodiscard]] GovernorState state() const;
  [[nodiscard]] bool may_measure() const { return state() == GovernorState::measuring; }
  [[nodiscard]] bool gave_up() const { return state() == GovernorState::gave_up; }
  [[nodiscard]] std::string reason() const;
  /// Governor::remedy.
  [[nodiscard]] std::string remedy() const;
  /// Governor::scale_of.
  [[nodiscard]] double scale_of(double canary_us) const;

  /// When measuring and waiting are to end, by `now_s`; nothing: never. What is being waited for then is not waited
  /// for.
  void set_end_s(std::optional<double> at_s) noexcept { end_s_ = at_s; }
  [[nodiscard]] bool time_is_up() const { return end_s_ && now_s() >= *end_s_; }
  /// Seconds until then; infinite: never.
  [[nodiscard]] double left_s() const { return end_s_ ? *end_s_ - now_s() : std::numeric_limits<double>::infinity(); }

  /// Seconds spent waiting so far, preheating included.
  [[nodiscard]] double waited_s() const noexcept { return waited_s_; }
  [[nodiscard]] double now_s() const { return hooks_.now_s(); }
  [[nodiscard]] Device& device() noexcept { return device_; }

 private:
  [[nodiscard]] SensorTrace::Moment moment();
  [[nodiscard]] double time_canary_us();
  [[nodiscard]] bool reading_is_fresh() const;
  void observe(std::optional<double> canary_us);
  void burn(double seconds);
  [[nodiscard]] bool wait();
  [[nodiscard]] bool stopped() const { return time_is_up() || (hooks_.stop && hooks_.stop()); }
  void tell();
  void tell_until_closed();

  Device& device_;
  DeviceMonitorHooks hooks_;
  bool passive_;
  Sensors sensors_;
  std::optional<double> canary_us_;
  double canary_at_s_ = 0;
  std::optional<double> read_at_s_;
  double reading_s_ = 0;  // what the last reading took
  double waited_s_ = 0;
  std::optional<double> end_s_;

  mutable std::mutex mutex_;  // of what follows: telemetry looks at it from its thread
  Governor governor_;
  std::optional<double> trace_began_s_;
  std::optional<double> untold_canary_us_;
  bool closed_ = false;
  std::condition_variable closing_;
  std::thread teller_;
};

}  // namespace pascaline
