#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "runtime/dispatch/dispatcher.hpp"

namespace pascaline::cli {

/// From the least to the greatest of some readings.
struct ReadingRange {
  double low = 0;
  double high = 0;
};

/// What the card's sensors told while something ran, and what it launched meanwhile.
struct PassConditions {
  std::optional<ReadingRange> temperature_c{};  ///< nothing where the card does not tell
  std::optional<ReadingRange> sm_clock_mhz{};
  std::optional<ReadingRange> power_w{};
  std::optional<double> temperature_limit_c{};
  std::optional<std::uint64_t> throttle_reasons{};       ///< NVML's bits, all that were set at a time
  std::array<std::uint64_t, kThermalStates> launches{};  ///< by thermal state; none where nothing is watched
};

/// Reads the sensors of a dispatcher's card, or takes what the watcher of its thermal state read, where there is one.
/// For the thread that uses the device.
class ConditionsRecorder {
 public:
  /// `dispatcher` must outlive it.
  explicit ConditionsRecorder(const Dispatcher& dispatcher) : dispatcher_(dispatcher) {}

  /// Between two launches: reads, if the last reading is 20 ms old. What is launched counts from the first call on.
  void look();
  /// Reads once more.
  [[nodiscard]] PassConditions finish();

 private:
  using Clock = std::chrono::steady_clock;

  void read();

  const Dispatcher& dispatcher_;
  PassConditions conditions_;
  std::array<std::uint64_t, kThermalStates> launches_before_{};
  std::optional<Clock::time_point> read_at_;
};

/// "card while it ran: 61-64 C (limit 83 C), 1480 MHz, 98 W, not slowed down; winners by time"; says of each objective
/// of how many launches it was, where several were in use.
[[nodiscard]] std::string conditions_line(const PassConditions& conditions, const Dispatcher& dispatcher);
[[nodiscard]] nlohmann::json conditions_json(const PassConditions& conditions, const Dispatcher& dispatcher);

}  // namespace pascaline::cli
