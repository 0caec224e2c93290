#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/trial.hpp"
#include "runtime/device/device.hpp"
#include "runtime/thermal/throttle_reasons.hpp"

namespace pascaline {

/// What the governor has the device do.
enum class GovernorState : std::uint8_t {
  preheating,  ///< run load until temperature and clock are steady
  measuring,
  settling,  ///< wait: throttled, or the clock is not what it was
  cooling,   ///< wait: too close to the card's temperature limit
  gave_up,   ///< it did not get better within the time limit
};

[[nodiscard]] std::string_view name_of(GovernorState state) noexcept;

struct GovernorOptions {
  bool passive = false;  ///< never waits and marks nothing: for devices without a clock of their own (host)
  double margin_c = 3;   ///< pauses from the card's limit minus this
  double resume_c = 8;   ///< continues below the card's limit minus this
  std::optional<double> limit_c = std::nullopt;  ///< a limit of the user's own; the lower of it and the card's holds
  double clock_tolerance = 0.02;                 ///< relative, against the steady clock
  double canary_tolerance = 0.02;                ///< relative, against the steady canary
  double normalise_from = 0.005;                 ///< a canary off by less is noise and scales nothing
  double preheat_limit_s = 60;                   ///< 0: no preheating
  double steady_s = 3;                   ///< how long temperature and canary must stand still to be called steady
  double steady_c = 1;                   ///< a temperature that moves by less meanwhile is steady
  double settle_s = 10;                  ///< a new clock that stands this long is taken as the steady one
  double pause_limit_s = 900;            ///< settling and cooling longer than this is giving up
  std::uint64_t tolerated_throttle = 0;  ///< NVML throttle bits that do not matter
};

/// Decides when a card is fit to be measured on. A card that slows down for its temperature is waited for; one under a
/// power cap that lasts (a laptop's, a weak power adapter's) is measured where its clock and canary stand still. Pure:
/// time, sensor readings and canary times are handed in, so that a script can drive it. Readings that a card lacks are
/// left out of the decision.
class Governor {
 public:
  explicit Governor(GovernorOptions options);

  /// A look at the card, `at_s` seconds on a clock that never steps back; `canary_us` if the canary was just timed.
  void observe(double at_s, const Sensors& sensors, std::optional<double> canary_us);

  [[nodiscard]] GovernorState state() const noexcept;
  /// Whether samples may be taken now.
  [[nodiscard]] bool may_measure() const noexcept { return state() == GovernorState::measuring; }
  /// The verdict on a sample taken beside the last observation.
  [[nodiscard]] SampleMark mark() const noexcept;
  /// What times measured now are to be multiplied by to be as if the clock were the first steady one's.
  [[nodiscard]] double clock_scale() const noexcept { return last_canary_us_ ? scale_of(*last_canary_us_) : 1.0; }
  /// The same where the canary takes `canary_us`.
  [[nodiscard]] double scale_of(double canary_us) const noexcept;
  /// Whether the canary, when last timed, was off its steady time.
  [[nodiscard]] bool canary_drifted() const noexcept { return canary_drifted_; }
  /// The canary's time on the card as it is when steady, once that is known.
  [[nodiscard]] std::optional<double> steady_canary_us() const noexcept { return steady_canary_us_; }
  /// Why it waits or gave up, or that it measures under a power cap, for people; else empty while measuring.
  [[nodiscard]] std::string reason() const { return reason_; }
  /// The option of a sweep with which the card would be measured as it is, "--tolerate power"; empty
  /// until it gave up, and for a card that is too hot.
  [[nodiscard]] std::string remedy() const;

 private:
  // One observation without what is not to be judged: nonsense, and the clock of an idle card.
  struct Look {
    double at_s = 0;
    std::optional<double> temperature_c;
    std::optional<double> sm_clock_mhz;
    std::optional<double> canary_us;
    std::uint64_t throttle = 0;  // bits that matter; for its power only those of kPowerThrottleBits
  };

  void remember(double at_s, const Sensors& sensors, std::optional<double> canary_us);
  [[nodiscard]] std::optional<double> limit_c() const;
  [[nodiscard]] bool too_hot() const;
  [[nodiscard]] bool clock_off() const;
  [[nodiscard]] SampleMark judge();
  [[nodiscard]] GovernorState decide();
  [[nodiscard]] GovernorState preheat() const;
  [[nodiscard]] std::uint64_t judged_bits(const Sensors& sensors) const;
  [[nodiscard]] std::uint64_t hindrance(const Look& look) const noexcept { return look.throttle & ~accepted_throttle_; }
  [[nodiscard]] bool stands_still(double window_s, std::uint64_t under = 0) const;
  [[nodiscard]] std::optional<double> cap_window_s() const;
  [[nodiscard]] bool temperature_stands_still() const;
  [[nodiscard]] std::vector<double> readings(std::optional<double> Look::*of, double window_s,
                                             std::uint64_t under = 0) const;
  void take_reference(double window_s);
  void complete_reference();
  [[nodiscard]] std::string explain(GovernorState state) const;

  GovernorOptions options_;
  GovernorState state_;
  SampleMark mark_ = SampleMark::none;
  std::string reason_;
  std::deque<Look> looks_;  // the last seconds, newest at the back
  double first_at_s_ = 0;
  double waited_s_ = 0;  // settling or cooling in one go
  std::optional<double> card_limit_c_;
  std::uint64_t accepted_throttle_ = 0;  // of a power cap under which the card stands still
  bool referenced_ = false;
  bool canary_drifted_ = false;
  std::optional<double> steady_clock_mhz_;
  std::optional<double> steady_canary_us_;
  std::optional<double> first_canary_us_;
  std::optional<double> last_canary_us_;
};

}  // namespace pascaline
