#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/device.hpp"

namespace pascaline {

/// How warm a card is, as far as it matters for what is launched on it; the later, the worse.
enum class ThermalState : std::uint8_t {
  cool,
  hot,        ///< near its temperature limit, or the laptop's processor is near its own
  throttled,  ///< it slows down
};

inline constexpr std::size_t kThermalStates = 3;

/// "cool", "hot", "throttled".
[[nodiscard]] std::string_view name_of(ThermalState state) noexcept;
/// Nothing for another text.
[[nodiscard]] std::optional<ThermalState> thermal_state_named(std::string_view name) noexcept;

/// A look at the card and what shares its cooling.
struct ThermalReading {
  Sensors card;
  std::optional<double> processor_c;           ///< of a laptop's processor, whose heat pipe is often the card's, too
  std::optional<double> processor_critical_c;  ///< where that must slow down
};

/// Something to tell people: the state changed, or a sensor fell silent or was heard again.
struct ThermalEvent {
  std::optional<ThermalState> entered{};  ///< the state that began; nothing where it stays
  std::string what;                       ///< why it began; or what became of which sensors
};

/// When a state begins and ends. All times are in seconds.
struct ThermalThresholds {
  double margin_c = 5;                           ///< hot from the limit minus this on
  double resume_c = 10;                          ///< cool again from the limit minus this down; at least `margin_c`
  std::optional<double> limit_c = std::nullopt;  ///< a limit of the user's own; the lower of it and the card's holds
  double processor_margin_c = 5;                 ///< as `margin_c`, below the processor's critical temperature
  double processor_resume_c = 15;                ///< as `resume_c`
  bool power_throttle = true;                    ///< slowing down for its power counts as throttled
  double rise_s = 1;                             ///< readings must be worse that long for the state to rise
  double fall_s = 10;                            ///< … and better that long for it to fall
  double dwell_s = 5;                            ///< a state lasts at least that long
  double keep_s = 30;  ///< a sensor that vanishes counts as it last read for that long; none left: cool
};

/// Decides how warm the card is, with hysteresis. Pure: time and readings are handed in, so that a script can drive it.
///
/// There are three witnesses: the card's temperature below its limit, its reasons for throttling (where it tells none,
/// a clock below 70 % of its highest while it is hot), and the temperature of a laptop's processor. Each says cool, hot
/// or throttled, or nothing; the worst counts. Between the two margins a witness keeps to what it said before. A
/// reading out of all reason (0 °C and below, above 150 °C) is taken for none. A temperature that does not move proves
/// nothing, neither that the sensor hangs nor that all is well: a card in balance reads the same for minutes, and one
/// whose sensor hangs low is given away by its throttling.
class ThermalMonitor {
 public:
  explicit ThermalMonitor(const ThermalThresholds& thresholds = {}) : thresholds_(thresholds) {}

  /// A look, `at_s` on a clock that never steps back (one that does is passed over). Returns the state.
  ThermalState observe(double at_s, const ThermalReading& reading);

  [[nodiscard]] ThermalState state() const noexcept { return state_; }
  /// Times that the state changed.
  [[nodiscard]] std::uint64_t switches() const noexcept { return switches_; }
  /// Why it is in that state, for people: of the last change; empty before the first.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

  /// Events that are kept at most; of more the latest.
  static constexpr std::size_t kMaxEvents = 20;
  /// What happened since this was last asked for, in order.
  [[nodiscard]] std::vector<ThermalEvent> take_events() { return std::exchange(events_, {}); }

 private:
  struct Witness {
    ThermalState says = ThermalState::cool;
    std::optional<double> seen_at_s;
    bool silent = false;  // it was heard, and longer ago than `keep_s`
    std::string reason;
  };
  void judge_card(double at_s, const Sensors& card);
  void judge_throttling(double at_s, const Sensors& card);
  void judge_processor(double at_s, const ThermalReading& reading);
  [[nodiscard]] const Witness* worst(double at_s) const;
  void tell_silence(double at_s);
  void enter(double at_s, ThermalState state, const std::string& reason);
  void add_event(ThermalEvent event);

  ThermalThresholds thresholds_;
  ThermalState state_ = ThermalState::cool;
  std::uint64_t switches_ = 0;
  std::string reason_;
  std::array<Witness, 3> witnesses_;
  std::vector<ThermalEvent> events_;
  std::optional<double> card_limit_c_;
  std::optional<double> last_at_s_;
  std::optional<double> entered_at_s_;
  // Since when the readings want another state: all of them a worse one, or all of them a better one; and of what they
  // want, the state nearest to the present one.
  std::optional<double> wanted_since_s_;
  ThermalState wanted_ = ThermalState::cool;
};

}  // namespace pascaline
