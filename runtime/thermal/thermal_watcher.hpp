#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/device/device.hpp"
#include "runtime/thermal/sensor_trace.hpp"
#include "runtime/thermal/thermal_state.hpp"

namespace pascaline {

/// Where a watcher has its readings from, and when it takes them.
struct ThermalSources {
  std::optional<SensorTrace> trace{};  ///< read instead of card and processor; it begins with the first reading
  std::filesystem::path root = "/";    ///< that /sys is looked for in
  double period_s = 0.5;
  std::function<double()> now_s{};  ///< a clock that never steps back, asked once for each reading; empty: the system's
};

/// What a watcher knows at a moment.
struct ThermalSnapshot {
  ThermalState state = ThermalState::cool;
  std::uint64_t switches = 0;
  std::string reason;      ///< of the last switch; empty before the first
  ThermalReading reading;  ///< the last one
  std::uint64_t readings = 0;
};

/// Reads the sensors of a device from a thread of its own, and puts the state where whoever launches looks it up. What
/// goes wrong there counts as a reading without values; nothing of it reaches the program.
class ThermalWatcher {
 public:
  /// `device` and `cell`, in which the state is kept as its number, must outlive it. Watching begins at once; if there
  /// is no thread to be had, the state stays cool (see `watches`).
  ThermalWatcher(Device& device, const ThermalThresholds& thresholds, ThermalSources sources,
                 std::atomic<std::uint8_t>& cell) noexcept;
  ThermalWatcher(const ThermalWatcher&) = delete;
  ThermalWatcher& operator=(const ThermalWatcher&) = delete;
  /// Ends at once, but for a reading that is being taken. The cell is cool then.
  ~ThermalWatcher();

  [[nodiscard]] bool watches() const noexcept { return thread_.joinable(); }
  [[nodiscard]] ThermalSnapshot snapshot() const;
  /// See ThermalMonitor.
  [[nodiscard]] std::vector<ThermalEvent> take_events();

 private:
  void watch() noexcept;
  void look();
  [[nodiscard]] ThermalReading read(double at_s);

  Device& device_;
  ThermalSources sources_;
  std::atomic<std::uint8_t>& cell_;
  bool reads_processor_ = false;
  std::optional<double> trace_began_s_;  // of the thread

  mutable std::mutex mutex_;  // of what follows
  ThermalMonitor monitor_;
  ThermalReading last_;
  std::uint64_t readings_ = 0;
  bool closed_ = false;
  std::condition_variable closing_;
  std::thread thread_;
};

}  // namespace pascaline
