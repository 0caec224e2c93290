#include "cli/model/pass_conditions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/thermal/plausible_temperature.hpp"
#include "runtime/thermal/throttle_reasons.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kReadEvery{20};

void widen(std::optional<ReadingRange>& range, const std::optional<double>& reading) {
  if (reading) {
    range = range ? ReadingRange{std::min(range->low, *reading), std::max(range->high, *reading)}
                  : ReadingRange{*reading, *reading};
  }
}

std::string reading_text(const ReadingRange& range, const char* unit) {
  const std::string low = fmt::format("{:.0f}", range.low);
  const std::string high = fmt::format("{:.0f}", range.high);
  return fmt::format("{} {}", low == high ? low : low + "-" + high, unit);
}

// What it slowed down for; empty if it did not.
std::vector<std::string> slowed_by(std::uint64_t throttle_reasons) {
  std::vector<std::string> causes;
  if ((throttle_reasons & kThermalThrottleBits) != 0) {
    causes.emplace_back("temperature");
  }
  if ((throttle_reasons & kPowerThrottleBits) != 0) {
    causes.emplace_back("power");
  }
  return causes;
}

std::vector<Objective> policy_of(ThermalState state, const Dispatcher& dispatcher) {
  std::vector<Objective> objectives;
  if (dispatcher.watches()) {
    for (const Objective objective : dispatcher.thermal_policy().of(state)) {
      objectives.push_back(objective);
    }
  }
  return objectives.empty() ? std::vector{Objective::time} : objectives;
}

std::vector<std::string> objectives_of(ThermalState state, const Dispatcher& dispatcher) {
  std::vector<std::string> names;
  for (const Objective objective : policy_of(state, dispatcher)) {
    names.emplace_back(name_of(objective));
  }
  return names;
}

std::string winners_text(const PassConditions& conditions, const Dispatcher& dispatcher) {
  if (!dispatcher.watches()) {
    return "winners by time";
  }
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < kThermalStates; ++i) {
    if (conditions.launches[i] > 0) {
      const auto state = static_cast<ThermalState>(i);
      std::vector<std::string_view> phrases;
      for (const Objective objective : policy_of(state, dispatcher)) {
        phrases.push_back(phrase_of(objective));
      }
      parts.push_back(
          fmt::format("by {} ({}: {})", fmt::join(phrases, " or "), name_of(state),
                      conditions.launches[i] == 1 ? "1 launch" : fmt::format("{} launches", conditions.launches[i])));
    }
  }
  return parts.empty() ? "no launches" : fmt::format("winners {}", fmt::join(parts, ", "));
}

json range_json(const std::optional<ReadingRange>& range) {
  return range ? json{range->low, range->high} : json(nullptr);
}

}  // namespace

void ConditionsRecorder::look() {
  if (!read_at_) {
    launches_before_ = dispatcher_.thermal().launches;
  }
  if (!read_at_ || Clock::now() - *read_at_ >= kReadEvery) {
    read();
  }
}

void ConditionsRecorder::read() {
  const Sensors sensors =
      dispatcher_.watches() ? dispatcher_.thermal().snapshot.reading.card : dispatcher_.device().read_sensors();
  widen(conditions_.temperature_c, plausible_temperature_c(sensors.temperature_c));
  widen(conditions_.sm_clock_mhz, sensors.sm_clock_mhz);
  widen(conditions_.power_w, sensors.power_w);
  if (sensors.temperature_limit_c) {
    conditions_.temperature_limit_c = sensors.temperature_limit_c;
  }
  if (sensors.throttle_reasons) {
    conditions_.throttle_reasons = conditions_.throttle_reasons.value_or(0) | *sensors.throttle_reasons;
  }
  read_at_ = Clock::now();
}

PassConditions ConditionsRecorder::finish() {
  read();
  const auto launches = dispatcher_.thermal().launches;
  for (std::size_t i = 0; i < kThermalStates; ++i) {
    conditions_.launches[i] = launches[i] - launches_before_[i];
  }
  return conditions_;
}

std::string conditions_line(const PassConditions& conditions, const Dispatcher& dispatcher) {
  std::vector<std::string> parts;
  if (conditions.temperature_c) {
    parts.push_back(
        reading_text(*conditions.temperature_c, "C") +
        (conditions.temperature_limit_c ? fmt::format(" (limit {:.0f} C)", *conditions.temperature_limit_c) : ""));
  }
  if (conditions.sm_clock_mhz) {
    parts.push_back(reading_text(*conditions.sm_clock_mhz, "MHz"));
  }
  if (conditions.power_w) {
    parts.push_back(reading_text(*conditions.power_w, "W"));
  }
  if (conditions.throttle_reasons) {
    const std::vector<std::string> causes = slowed_by(*conditions.throttle_reasons);
    parts.push_back(causes.empty() ? "not slowed down"
                                   : fmt::format("slowed down for its {}", fmt::join(causes, " and its ")));
  }
  return fmt::format(
      "card while it ran: {}; {}\n",
      parts.empty() ? "it reports neither temperature nor clock" : fmt::format("{}", fmt::join(parts, ", ")),
      winners_text(conditions, dispatcher));
}

json conditions_json(const PassConditions& conditions, const Dispatcher& dispatcher) {
  json launches = json::object();
  json winners_by = json::object();
  for (std::size_t i = 0; i < kThermalStates; ++i) {
    const auto state = static_cast<ThermalState>(i);
    launches[std::string(name_of(state))] = conditions.launches[i];
    winners_by[std::string(name_of(state))] = objectives_of(state, dispatcher);
  }
  const auto& bits = conditions.throttle_reasons;
  const auto& limit_c = conditions.temperature_limit_c;
  return {{"temperature_c", range_json(conditions.temperature_c)},
          {"temperature_limit_c", limit_c ? json(*limit_c) : json(nullptr)},
          {"sm_clock_mhz", range_json(conditions.sm_clock_mhz)},
          {"power_w", range_json(conditions.power_w)},
          {"throttle_reasons", bits ? json(*bits) : json(nullptr)},
          {"slowed_down_for", bits ? json(slowed_by(*bits)) : json(nullptr)},
          {"launches", dispatcher.watches() ? launches : json(nullptr)},
          {"winners_by", dispatcher.watches() ? winners_by : json{{"cool", {name_of(Objective::time)}}}}};
}

}  // namespace pascaline::cli
