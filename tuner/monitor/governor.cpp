#include "tuner/monitor/governor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

constexpr std::array<std::string_view, 5> kStateNames{"preheating", "measuring", "settling", "cooling", "gave_up"};

// Bits of nvmlClocksThrottleReasons. What is not named here (a clock set by the user or for a display, clocks in step
// with other cards) is no throttling.
constexpr std::uint64_t kIdle = 0x1;
constexpr double kCanaryMove = 0.005;       // relative, that is still standing
constexpr std::size_t kFewestReadings = 3;  // that tell of standing still
constexpr double kLongestStepSeconds = 5;   // between looks of one wait; a longer one was something else
constexpr double kHighestTemperatureC = 150;

std::optional<double> sane(std::optional<double> value, double most) {
  return value && *value > 0 && *value <= most ? value : std::nullopt;
}

bool off(double value, double level, double tolerance) { return std::abs(value - level) > tolerance * level; }

bool within(const std::vector<double>& values, double tolerance) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *high - *low <= tolerance * median(values);
}

}  // namespace

std::string_view name_of(GovernorState state) noexcept { return kStateNames[static_cast<std::size_t>(state)]; }

Governor::Governor(GovernorOptions options)
    : options_(options), state_(options.passive ? GovernorState::measuring : GovernorState::preheating) {
  if (!options_.passive) {
    reason_ = "nothing was observed yet";
  }
}

void Governor::observe(double at_s, const Sensors& sensors, std::optional<double> canary_us) {
  if (options_.passive || state_ == GovernorState::gave_up) {
    return;
  }
  const double since_s = looks_.empty() ? 0 : std::clamp(at_s - looks_.back().at_s, 0.0, kLongestStepSeconds);
  remember(at_s, sensors, canary_us);
  const auto waits = [](GovernorState state) {
    return state == GovernorState::settling || state == GovernorState::cooling;
  };
  const bool waited = waits(state_);
  mark_ = judge();
  const GovernorState next = decide();
  waited_s_ = waits(next) && waited ? waited_s_ + since_s : 0;
  state_ = next;
  reason_ = explain(next);
  if (waited_s_ > options_.pause_limit_s) {
    state_ = GovernorState::gave_up;
    const std::string way_out = remedy();
    reason_ = fmt::format("gave up after {:.0f} s: {}{}", waited_s_, reason_,
                          way_out.empty() ? "" : fmt::format("; to measure it as it is, give {}", way_out));
  }
}

GovernorState Governor::state() const noexcept { return state_; }

SampleMark Governor::mark() const noexcept { return mark_; }

double Governor::scale_of(double canary_us) const noexcept {
  if (options_.passive || !first_canary_us_ || !(canary_us > 0)) {
    return 1.0;
  }
  return off(canary_us, *first_canary_us_, options_.normalise_from) ? *first_canary_us_ / canary_us : 1.0;
}

void Governor::remember(double at_s, const Sensors& sensors, std::optional<double> canary_us) {
  constexpr double kAny = std::numeric_limits<double>::max();
  Look look;
  look.at_s = at_s;
  look.temperature_c = sane(sensors.temperature_c, kHighestTemperatureC);
  look.canary_us = sane(canary_us, kAny);
  if (const auto limit = sane(sensors.temperature_limit_c, kHighestTemperatureC)) {
    card_limit_c_ = limit;  // it does not change, so it stays known if the reading vanishes
  }
  const std::uint64_t bits = judged_bits(sensors);
  look.throttle = bits & (kPowerThrottleBits | kThermalThrottleBits) & ~options_.tolerated_throttle;
  // An idle card's clock says nothing of a busy one's, and tolerating a throttle is tolerating its clock.
  if ((bits & kIdle) == 0 && (bits & (kPowerThrottleBits | kThermalThrottleBits) & options_.tolerated_throttle) == 0) {
    look.sm_clock_mhz = sane(sensors.sm_clock_mhz, kAny);
  }
  if (look.canary_us) {
    last_canary_us_ = look.canary_us;
  }
  first_at_s_ = looks_.empty() ? at_s : first_at_s_;
  looks_.push_back(look);
  const double kept_s = std::max(options_.steady_s, options_.settle_s);
  while (looks_.size() > 1 && looks_[1].at_s <= at_s - kept_s) {
    looks_.pop_front();  // one that is older than the window stays, to show that the window is whole
  }
}

// HwSlowdown alone does not tell what for. Beside the bit of a power brake, or on a card that is cool, it is its power.
std::uint64_t Governor::judged_bits(const Sensors& sensors) const {
  const std::uint64_t bits = sensors.throttle_reasons.value_or(0);
  if ((bits & kHwSlowdownBit) == 0 || (bits & kHwThermalBit) != 0) {
    return bits;
  }
  const auto now_c = sane(sensors.temperature_c, kHighestTemperatureC);
  const auto limit = limit_c();
  const bool cool = now_c && limit && *now_c <= *limit - std::max(options_.resume_c, options_.margin_c);
  return (bits & kHwPowerBrakeBit) != 0 || cool ? (bits & ~kHwSlowdownBit) | kHwPowerBrakeBit : bits;
}

std::optional<double> Governor::limit_c() const {
  if (card_limit_c_ && options_.limit_c) {
    return std::min(*card_limit_c_, *options_.limit_c);
  }
  return card_limit_c_ ? card_limit_c_ : options_.limit_c;
}

bool Governor::too_hot() const {
  const auto limit = limit_c();
  const auto& now_c = looks_.back().temperature_c;
  if (!limit || !now_c) {
    return false;
  }
  if (state_ == GovernorState::cooling) {
    return *now_c > *limit - std::max(options_.resume_c, options_.margin_c);
  }
  return *now_c >= *limit - options_.margin_c;
}

bool Governor::clock_off() const {
  const Look& look = looks_.back();
  return look.sm_clock_mhz && steady_clock_mhz_ &&
         off(*look.sm_clock_mhz, *steady_clock_mhz_, options_.clock_tolerance);
}

SampleMark Governor::judge() {
  const Look& look = looks_.back();
  if (look.canary_us && steady_canary_us_) {
    canary_drifted_ = off(*look.canary_us, *steady_canary_us_, options_.canary_tolerance);
  }
  if ((hindrance(look) & kThermalThrottleBits) != 0) {
    return SampleMark::thermal_throttle;
  }
  if (hindrance(look) != 0) {
    return SampleMark::power_throttle;
  }
  if (clock_off()) {
    return SampleMark::clock_drift;
  }
  return canary_drifted_ ? SampleMark::canary_drift : SampleMark::none;
}

GovernorState Governor::decide() {
  if (too_hot()) {
    return GovernorState::cooling;
  }
  if (state_ == GovernorState::preheating && preheat() != GovernorState::measuring) {
    return preheat();
  }
  if (state_ == GovernorState::preheating) {
    take_reference(options_.steady_s);
    return GovernorState::measuring;
  }
  if (referenced_ && mark_ == SampleMark::none) {
    complete_reference();
    return GovernorState::measuring;
  }
  const auto capped_s = cap_window_s();
  if (!capped_s && !stands_still(options_.settle_s)) {
    return GovernorState::settling;
  }
  accepted_throttle_ = capped_s ? kPowerThrottleBits : 0;
  take_reference(capped_s.value_or(options_.settle_s));
  mark_ = SampleMark::none;
  return GovernorState::measuring;
}

// How long the card has stood still under a power cap, if that is long enough to take the cap for lasting. Cards report
// a cap on and off while it holds them.
std::optional<double> Governor::cap_window_s() const {
  const double window_s = std::min(options_.settle_s, options_.pause_limit_s / 2);
  std::ptrdiff_t looks = 0;
  std::ptrdiff_t capped = 0;
  for (const Look& look : looks_) {
    const bool within = look.at_s >= looks_.back().at_s - window_s;
    looks += within ? 1 : 0;
    capped += within && (look.throttle & kPowerThrottleBits) != 0 ? 1 : 0;
  }
  return 2 * capped >= looks && stands_still(window_s, kPowerThrottleBits) ? std::optional(window_s) : std::nullopt;
}

// `measuring` when it is over. A card that throttles even so has no steady clock yet: it must settle first.
GovernorState Governor::preheat() const {
  const bool over = looks_.back().at_s - first_at_s_ >= options_.preheat_limit_s ||
                    (stands_still(options_.steady_s, kPowerThrottleBits) && temperature_stands_still());
  if (!over) {
    return GovernorState::preheating;
  }
  return hindrance(looks_.back()) != 0 ? GovernorState::settling : GovernorState::measuring;
}

std::vector<double> Governor::readings(std::optional<double> Look::*of, double window_s, std::uint64_t under) const {
  std::vector<double> values;
  for (const Look& look : looks_) {
    if (look.at_s >= looks_.back().at_s - window_s && (hindrance(look) & ~under) == 0 && look.*of) {
      values.push_back(*(look.*of));
    }
  }
  return values;
}

// Whether clock and canary stood still all the time, unthrottled but for the bits in `under`.
bool Governor::stands_still(double window_s, std::uint64_t under) const {
  const double from_s = looks_.back().at_s - window_s;
  if (looks_.front().at_s > from_s) {
    return false;
  }
  const auto throttled = [&](const Look& look) { return look.at_s >= from_s && (hindrance(look) & ~under) != 0; };
  if (std::any_of(looks_.begin(), looks_.end(), throttled)) {
    return false;
  }
  const std::vector<double> canaries = readings(&Look::canary_us, window_s, under);
  const std::vector<double> clocks = readings(&Look::sm_clock_mhz, window_s, under);
  return canaries.size() >= kFewestReadings && within(canaries, options_.canary_tolerance) &&
         moved(canaries) < kCanaryMove * median(canaries) &&
         (clocks.empty() || within(clocks, options_.clock_tolerance));
}

bool Governor::temperature_stands_still() const {
  return moved(readings(&Look::temperature_c, options_.steady_s, kPowerThrottleBits)) < options_.steady_c;
}

// What the last readings say is steady from now on; times are scaled to what was steady first.
void Governor::take_reference(double window_s) {
  const std::vector<double> canaries = readings(&Look::canary_us, window_s);
  const std::vector<double> clocks = readings(&Look::sm_clock_mhz, window_s);
  steady_canary_us_ = canaries.empty() ? steady_canary_us_ : median(canaries);
  steady_clock_mhz_ = clocks.empty() ? std::nullopt : std::optional(median(clocks));
  first_canary_us_ = first_canary_us_ ? first_canary_us_ : steady_canary_us_;
  canary_drifted_ = false;
  referenced_ = true;
}

// A sensor that spoke up only later has its first reading for reference.
void Governor::complete_reference() {
  const Look& look = looks_.back();
  steady_clock_mhz_ = steady_clock_mhz_ ? steady_clock_mhz_ : look.sm_clock_mhz;
  steady_canary_us_ = steady_canary_us_ ? steady_canary_us_ : look.canary_us;
  first_canary_us_ = first_canary_us_ ? first_canary_us_ : steady_canary_us_;
}

std::string Governor::explain(GovernorState state) const {
  const Look& look = looks_.back();
  if (state == GovernorState::measuring) {
    return (look.throttle & accepted_throttle_) == 0
               ? std::string()
               : fmt::format("a power cap holds the card's clock{}; the clock is steady, so trials are measured at it",
                             steady_clock_mhz_ ? fmt::format(" at {:.0f} MHz", *steady_clock_mhz_) : "");
  }
  if (state == GovernorState::cooling) {
    return fmt::format("{:.0f} C, limit {:.0f} C: cooling down", *look.temperature_c, *limit_c());
  }
  if (const std::uint64_t bits = hindrance(look); bits != 0) {
    const bool thermal = (bits & kThermalThrottleBits) != 0;
    return fmt::format("the card slows down for its {} (throttle reasons {:#x}){}", thermal ? "temperature" : "power",
                       bits, thermal ? "" : ", and its clock is not steady yet");
  }
  if (state == GovernorState::preheating) {
    return "warming up until temperature and clock are steady";
  }
  if (clock_off()) {
    return fmt::format("SM clock at {:.0f} MHz, steady is {:.0f} MHz", *look.sm_clock_mhz, *steady_clock_mhz_);
  }
  if (canary_drifted_) {
    return fmt::format(
        "the canary takes {:.1f} us, {:.1f} us is steady: the clock has changed, or something else "
        "runs on the card",
        *last_canary_us_, *steady_canary_us_);
  }
  return "clock and canary are not steady yet";
}

std::string Governor::remedy() const {
  if (state_ != GovernorState::gave_up) {
    return {};
  }
  if (too_hot()) {
    return {};
  }
  const Look& look = looks_.back();
  if ((hindrance(look) & kThermalThrottleBits) != 0) {
    return "--tolerate thermal";
  }
  constexpr double kMoreDrift = 2.5;
  return (look.throttle & kPowerThrottleBits) != 0
             ? "--tolerate power"
             : fmt::format("--drift {:.2g}", std::min(1.0, kMoreDrift * options_.clock_tolerance));
}

}  // namespace pascaline
