#include "runtime/thermal/thermal_state.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/thermal/plausible_temperature.hpp"
#include "runtime/thermal/throttle_reasons.hpp"

namespace pascaline {
namespace {

constexpr std::array<std::string_view, kThermalStates> kThermalStateNames{"cool", "hot", "throttled"};

enum WitnessIndex : std::size_t { kCard, kThrottling, kProcessor };
constexpr std::array<std::string_view, 3> kWitnessNames{"the card's temperature", "the card's throttling",
                                                        "the processor's temperature"};

constexpr double kThrottledClock = 0.7;       // of the highest
constexpr double kLongestSilenceSeconds = 5;  // between two looks that are taken as evidence of what was between them

// Hot above the upper mark, cool from the lower one down, and as before between them.
ThermalState between_marks(double celsius, double upper_c, double lower_c, ThermalState before) {
  if (celsius >= upper_c) {
    return ThermalState::hot;
  }
  return celsius <= lower_c ? ThermalState::cool : before;
}

}  // namespace

std::string_view name_of(ThermalState state) noexcept { return kThermalStateNames[static_cast<std::size_t>(state)]; }

std::optional<ThermalState> thermal_state_named(std::string_view name) noexcept {
  const auto* const found = std::find(kThermalStateNames.begin(), kThermalStateNames.end(), name);
  return found == kThermalStateNames.end()
             ? std::nullopt
             : std::optional(static_cast<ThermalState>(found - kThermalStateNames.begin()));
}

void ThermalMonitor::judge_card(double at_s, const Sensors& card) {
  if (const auto limit = plausible_temperature_c(card.temperature_limit_c)) {
    card_limit_c_ = limit;  // it does not change, so it stays known if the reading vanishes
  }
  const auto temperature = plausible_temperature_c(card.temperature_c);
  const auto limit = card_limit_c_ && thresholds_.limit_c ? std::min(card_limit_c_, thresholds_.limit_c)
                     : card_limit_c_                      ? card_limit_c_
                                                          : thresholds_.limit_c;
  if (!temperature || !limit) {
    return;
  }
  Witness& witness = witnesses_[kCard];
  witness.seen_at_s = at_s;
  witness.says = between_marks(*temperature, *limit - thresholds_.margin_c,
                               *limit - std::max(thresholds_.resume_c, thresholds_.margin_c), witness.says);
  witness.reason = fmt::format("the card is at {:.0f} C, its limit is {:.0f} C", *temperature, *limit);
}

// The clock of a card that idles is low, too, which does no harm: it counts only while the card is hot.
void ThermalMonitor::judge_throttling(double at_s, const Sensors& card) {
  Witness& witness = witnesses_[kThrottling];
  if (card.throttle_reasons) {
    const std::uint64_t counted = kThermalThrottleBits | (thresholds_.power_throttle ? kPowerThrottleBits : 0);
    const std::uint64_t bits = *card.throttle_reasons & counted;
    witness.seen_at_s = at_s;
    witness.says = bits != 0 ? ThermalState::throttled : ThermalState::cool;
    witness.reason = bits == 0 ? "the card does not slow down"
                               : fmt::format("the card slows down for its {} (throttle reasons {:#x})",
                                             (bits & kThermalThrottleBits) != 0 ? "temperature" : "power", bits);
    return;
  }
  if (card.sm_clock_mhz && card.sm_clock_limit_mhz && *card.sm_clock_mhz > 0 && *card.sm_clock_limit_mhz > 0) {
    const bool slow = *card.sm_clock_mhz < kThrottledClock * *card.sm_clock_limit_mhz &&
                      witnesses_[kCard].seen_at_s == at_s && witnesses_[kCard].says != ThermalState::cool;
    witness.seen_at_s = at_s;
    witness.says = slow ? ThermalState::throttled : ThermalState::cool;
    witness.reason =
        fmt::format("the card's clock is at {:.0f} MHz of {:.0f} MHz", *card.sm_clock_mhz, *card.sm_clock_limit_mhz);
  }
}

void ThermalMonitor::judge_processor(double at_s, const ThermalReading& reading) {
  const auto temperature = plausible_temperature_c(reading.processor_c);
  const auto critical = plausible_temperature_c(reading.processor_critical_c);
  if (!temperature || !critical) {
    return;
  }
  Witness& witness = witnesses_[kProcessor];
  witness.seen_at_s = at_s;
  witness.says =
      between_marks(*temperature, *critical - thresholds_.processor_margin_c,
                    *critical - std::max(thresholds_.processor_resume_c, thresholds_.processor_margin_c), witness.says);
  witness.reason = fmt::format("the processor is at {:.0f} C, {:.0f} C are critical", *temperature, *critical);
}

// Of those that were heard lately; null if there are none.
const ThermalMonitor::Witness* ThermalMonitor::worst(double at_s) const {
  const Witness* worst = nullptr;
  for (const Witness& witness : witnesses_) {
    const bool counts = witness.seen_at_s && at_s - *witness.seen_at_s <= thresholds_.keep_s;
    if (counts && (worst == nullptr || witness.says > worst->says)) {
      worst = &witness;
    }
  }
  return worst;
}

void ThermalMonitor::add_event(ThermalEvent event) {
  if (events_.size() == kMaxEvents) {
    events_.erase(events_.begin());
  }
  events_.push_back(std::move(event));
}

// Sensors that count no more, and those that do again. That none is left and the state ends is told by its end.
void ThermalMonitor::tell_silence(double at_s) {
  std::vector<std::string_view> lost;
  std::vector<std::string_view> heard;
  bool any_left = false;
  for (std::size_t i = 0; i < witnesses_.size(); ++i) {
    Witness& witness = witnesses_[i];
    const bool silent = witness.seen_at_s && at_s - *witness.seen_at_s > thresholds_.keep_s;
    any_left = any_left || (witness.seen_at_s && !silent);
    if (silent != witness.silent) {
      (silent ? lost : heard).push_back(kWitnessNames[i]);
      witness.silent = silent;
    }
  }
  if (!lost.empty() && (any_left || state_ == ThermalState::cool)) {
    add_event(
        {std::nullopt, fmt::format("no reading of {} for {:g} s: {}", fmt::join(lost, " and "), thresholds_.keep_s,
                                   any_left ? "the other sensors count" : "no sensor is left, so it is cool")});
  }
  if (!heard.empty()) {
    add_event(
        {std::nullopt, fmt::format("{} {} read again", fmt::join(heard, " and "), heard.size() > 1 ? "are" : "is")});
  }
}

void ThermalMonitor::enter(double at_s, ThermalState state, const std::string& reason) {
  state_ = state;
  reason_ = reason;
  entered_at_s_ = at_s;
  wanted_since_s_.reset();
  ++switches_;
  add_event({state, reason});
}

ThermalState ThermalMonitor::observe(double at_s, const ThermalReading& reading) {
  if (last_at_s_ && at_s < *last_at_s_) {
    return state_;
  }
  // A machine that slept, or a watcher that was held up, saw nothing in between.
  if (last_at_s_ && at_s - *last_at_s_ > kLongestSilenceSeconds) {
    wanted_since_s_.reset();
  }
  last_at_s_ = at_s;
  judge_card(at_s, reading.card);
  judge_throttling(at_s, reading.card);
  judge_processor(at_s, reading);
  tell_silence(at_s);
  const Witness* const witness = worst(at_s);
  if (witness == nullptr) {
    if (state_ != ThermalState::cool) {
      enter(at_s, ThermalState::cool, "no sensor tells the temperature any more");
    }
    return state_;
  }
  const ThermalState now = witness->says;
  if (now == state_) {
    wanted_since_s_.reset();
    return state_;
  }
  const bool rises = now > state_;
  if (!wanted_since_s_ || (wanted_ > state_) != rises) {
    wanted_since_s_ = at_s;
    wanted_ = now;
  }
  wanted_ = rises ? std::min(wanted_, now) : std::max(wanted_, now);
  const bool lasted = at_s - *wanted_since_s_ >= (rises ? thresholds_.rise_s : thresholds_.fall_s);
  const bool dwelt = !entered_at_s_ || at_s - *entered_at_s_ >= thresholds_.dwell_s;
  if (lasted && dwelt) {
    enter(at_s, wanted_, witness->reason);
  }
  return state_;
}

}  // namespace pascaline
