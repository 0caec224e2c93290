#include "app/model/thermal_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "core/util/shown_text.hpp"
#include "runtime/thermal/plausible_temperature.hpp"

namespace pascaline {

using nlohmann::json;

namespace {

// "hot (the card is at 82 C, its limit is 83 C): winners by sustained time or energy run"
std::string entered_text(ThermalState state, const std::string& why, const Dispatcher& dispatcher) {
  std::vector<std::string> names;
  for (const Objective objective : dispatcher.thermal_policy().of(state)) {
    names.emplace_back(phrase_of(objective));
  }
  return fmt::format("{} ({}): winners by {} run", name_of(state), why,
                     names.empty() ? "time" : fmt::format("{}", fmt::join(names, " or ")));
}

}  // namespace

CLI::Validator thermal_choice() {
  return CLI::Validator(
      [](std::string& text) {
        return text == "auto" || text == "off" || CLI::ExistingFile(text).empty()
                   ? std::string()
                   : fmt::format("'{}' is neither auto, off nor a file with a policy", text);
      },
      "auto|off|POLICY.json");
}

ThermalOptions thermal_options(const std::string& thermal, const std::string& sensors) {
  ThermalOptions options;
  options.enabled = thermal != "off";
  if (options.enabled && thermal != "auto") {
    try {
      options.policy = load_thermal_policy(thermal);
    } catch (const Error& error) {
      fmt::print(stderr, "pascaline: warning: {}; the default policy is used\n", clean_line(error.what()));
    }
  }
  if (!sensors.empty()) {
    options.sources.trace = SensorTrace::load(sensors);
  }
  return options;
}

json thermal_json(const ModelSession& session) {
  const Dispatcher* const dispatcher = session.dispatcher();
  if (dispatcher == nullptr || !dispatcher->watches()) {
    return nullptr;
  }
  const ThermalReport report = dispatcher->thermal();
  json launches = json::object();
  json winners_by = json::object();
  for (std::size_t i = 0; i < kThermalStates; ++i) {
    const auto state = static_cast<ThermalState>(i);
    launches[std::string(name_of(state))] = report.launches[i];
    json& objectives = winners_by[std::string(name_of(state))] = json::array();
    for (const Objective objective : dispatcher->thermal_policy().of(state)) {
      objectives.push_back(name_of(objective));
    }
  }
  const auto number = [](const auto& value) { return value ? json(*value) : json(nullptr); };
  const Sensors& card = report.snapshot.reading.card;
  return {{"state", name_of(report.snapshot.state)},
          {"switches", report.snapshot.switches},
          {"reason", report.snapshot.reason},
          {"launches", launches},
          {"winners_by", winners_by},
          {"problems_with_variants", report.problems},
          {"temperature_c", number(plausible_temperature_c(card.temperature_c))},
          {"temperature_limit_c", number(card.temperature_limit_c)},
          {"sm_clock_mhz", number(card.sm_clock_mhz)},
          {"power_w", number(card.power_w)},
          {"throttle_reasons", number(card.throttle_reasons)},
          {"processor_c", number(plausible_temperature_c(report.snapshot.reading.processor_c))}};
}

std::string thermal_line(const ModelSession& session) {
  const Dispatcher* const dispatcher = session.dispatcher();
  if (dispatcher == nullptr || !dispatcher->watches()) {
    return {};
  }
  const ThermalReport report = dispatcher->thermal();
  const ThermalSnapshot& now = report.snapshot;
  const std::optional<double> celsius = plausible_temperature_c(now.reading.card.temperature_c);
  const std::string temperature = celsius ? fmt::format(", {:.0f} C", *celsius) : "";
  return fmt::format("card: {}{}; {}{}; launches: {} cool, {} hot, {} throttled\n", name_of(now.state), temperature,
                     counted(now.switches, "change"), now.reason.empty() ? "" : " (the last: " + now.reason + ")",
                     report.launches[0], report.launches[1], report.launches[2]);
}

void tell_thermal_events(const ModelSession& session) {
  const Dispatcher* const dispatcher = session.dispatcher();
  if (dispatcher == nullptr) {
    return;
  }
  const std::vector<ThermalEvent> events = dispatcher->take_thermal_events();
  if (!events.empty()) {
    std::fflush(stdout);
  }
  for (const ThermalEvent& event : events) {
    const std::string what = event.entered ? entered_text(*event.entered, event.what, *dispatcher) : event.what;
    fmt::print(stderr, "pascaline: {}: {}\n", dispatcher->device().info().id, what);
  }
}

void note_thermal(const ModelSession& session) {
  tell_thermal_events(session);
  const Dispatcher* const dispatcher = session.dispatcher();
  if (dispatcher != nullptr && dispatcher->watches() && dispatcher->thermal().snapshot.switches > 0) {
    fmt::print(stderr, "pascaline: {}", thermal_line(session));
  }
}

}  // namespace pascaline
