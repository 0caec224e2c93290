#include "tuner/sweep/device_status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace pascaline {
namespace {

constexpr std::int64_t kOneEventMs = 60'000;  // between waits for one reason that are told as one
constexpr std::int64_t kAgainAfterMs = 600'000;

std::string without_figures(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
  return text;
}

}  // namespace

DeviceStatus::DeviceStatus(const DeviceInfo& device) {
  view_.device = device.id;
  view_.name = device.name;
}

std::string DeviceStatus::hear(const MeasureTelemetry& telemetry) {
  const Sensors& sensors = telemetry.sensors;
  view_.card.temperature_c = sensors.temperature_c;
  view_.card.sm_clock_mhz = sensors.sm_clock_mhz;
  view_.card.power_w = sensors.power_w;
  const std::string state(name_of(telemetry.state));
  const bool waits = telemetry.state == GovernorState::cooling || telemetry.state == GovernorState::settling;
  std::string line = waits ? line_of_wait(telemetry, view_.governor.state != state) : std::string();
  if (telemetry.state == GovernorState::measuring && !telemetry.reason.empty() && !std::exchange(told_of_cap_, true)) {
    line = fmt::format("{}: {}", view_.device, telemetry.reason);
  }
  view_.governor.state = state;
  view_.governor.reason = telemetry.reason;
  TelemetryRow row;
  row.unix_ms = telemetry.unix_ms;
  row.temperature_c = sensors.temperature_c;
  row.sm_clock_mhz = sensors.sm_clock_mhz;
  row.memory_clock_mhz = sensors.memory_clock_mhz;
  row.power_w = sensors.power_w;
  if (sensors.throttle_reasons) {
    row.throttle_reasons = static_cast<std::int64_t>(*sensors.throttle_reasons);
  }
  row.governor_state = state;
  row.canary_us = telemetry.canary_us;
  telemetry_.push_back(std::move(row));
  return line;
}

std::string DeviceStatus::line_of_wait(const MeasureTelemetry& telemetry, bool begins) {
  const std::string what = fmt::format("{}: {}", name_of(telemetry.state), telemetry.reason);
  Waits& waits = waits_[without_figures(what)];
  const bool again = telemetry.unix_ms - waits.seen_unix_ms < kOneEventMs;
  waits.seen_unix_ms = telemetry.unix_ms;
  if (!begins) {  // the reason may change while it waits: that is in `status` and in the telemetry
    return {};
  }
  waits.times = again ? waits.times + 1 : 1;
  if (again && waits.times > 1 && telemetry.unix_ms - waits.told_unix_ms < kAgainAfterMs) {
    return {};
  }
  waits.told_unix_ms = telemetry.unix_ms;
  return fmt::format("{}: {}{}", view_.device, what,
                     waits.times > 1 ? fmt::format("; {} times so far", waits.times) : "");
}

bool DeviceStatus::measuring() const {
  return view_.governor.state.empty() || view_.governor.state == name_of(GovernorState::measuring);
}

std::vector<TelemetryRow> DeviceStatus::take_telemetry() { return std::exchange(telemetry_, {}); }

DeviceProgress DeviceStatus::view(const SweepTask* task, std::size_t tasks, bool limited) const {
  DeviceProgress view = view_;
  if (task != nullptr) {
    const ProblemSearch& search = task->search;
    view.problem = search.wanted().problem.text();
    view.label = search.wanted().label;
    view.place.index = search.wanted().between ? 0 : task->index + 1;
    view.place.count = tasks;
    view.done = search.done();
    view.planned = limited ? search.done() + search.remaining() : 0;
    view.best_us = search.best_us();
    view.default_us = search.default_us();
  }
  return view;
}

}  // namespace pascaline
