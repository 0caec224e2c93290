#include "tuner/sweep/device_status.hpp"

#include <fmt/format.h>

#include <utility>

namespace pascaline {

DeviceStatus::DeviceStatus(const DeviceInfo& device) {
  view_.device = device.id;
  view_.name = device.name;
}

std::string DeviceStatus::hear(const MeasureTelemetry& telemetry) {
  const Sensors& sensors = telemetry.sensors;
  view_.temperature_c = sensors.temperature_c;
  view_.sm_clock_mhz = sensors.sm_clock_mhz;
  view_.power_w = sensors.power_w;
  const std::string state(name_of(telemetry.state));
  const bool waits = telemetry.state == GovernorState::cooling || telemetry.state == GovernorState::settling;
  std::string line;
  if (waits && view_.governor != state) {
    line = fmt::format("{}: {}: {}", view_.device, state, telemetry.reason);
  }
  view_.governor = state;
  view_.governor_reason = telemetry.reason;
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

bool DeviceStatus::measuring() const {
  return view_.governor.empty() || view_.governor == name_of(GovernorState::measuring);
}

std::vector<TelemetryRow> DeviceStatus::take_telemetry() { return std::exchange(telemetry_, {}); }

DeviceProgress DeviceStatus::view(const SweepTask* task, std::size_t tasks, bool limited) const {
  DeviceProgress view = view_;
  if (task != nullptr) {
    const ProblemSearch& search = task->search;
    view.problem = search.wanted().problem.text();
    view.label = search.wanted().label;
    view.problem_index = search.wanted().between ? 0 : task->index + 1;
    view.problem_count = tasks;
    view.done = search.done();
    view.planned = limited ? search.done() + search.remaining() : 0;
    view.best_us = search.best_us();
    view.default_us = search.default_us();
  }
  return view;
}

}  // namespace pascaline
