#include "tuner/sweep/sweep_view.hpp"

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace pascaline {
namespace {

using Json = nlohmann::json;

// Infinity and NaN are no JSON.
// What is not known yet is 0 here and null there.
template <typename Number>
Json positive(Number value) {
  return value > 0 ? Json(value) : Json();
}

Json number(const std::optional<double>& value) { return value && std::isfinite(*value) ? Json(*value) : Json(); }

template <typename T>
bool holds(const Json& value) {
  if constexpr (std::is_integral_v<T>) {
    return value.is_number_unsigned() ? std::in_range<T>(value.get<std::uint64_t>())
                                      : value.is_number_integer() && std::in_range<T>(value.get<std::int64_t>());
  } else if constexpr (std::is_same_v<T, std::string>) {
    return value.is_string();
  } else {
    return value.is_number();
  }
}

template <typename T>
void read(const Json& json, const char* key, T& into) {
  const auto found = json.find(key);
  if (found != json.end() && holds<T>(*found)) {
    into = found->template get<T>();
  }
}

void read(const Json& json, const char* key, std::optional<double>& into) {
  const auto found = json.find(key);
  if (found != json.end() && found->is_number()) {
    into = found->get<double>();
  }
}

void read(const Json& json, const char* key, std::vector<std::string>& into) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array()) {
    return;
  }
  for (const Json& value : *found) {
    if (value.is_string()) {
      into.push_back(value.get<std::string>());
    }
  }
}

}  // namespace

void to_json(Json& json, const DeviceProgress& device) {
  json = {{"device", device.device},
          {"name", device.name},
          {"problem", device.problem},
          {"label", device.label},
          {"problem_index", device.place.index},
          {"problem_count", device.place.count},
          {"stage", device.stage},
          {"done", device.done},
          {"planned", positive(device.planned)},
          {"best_us", positive(device.best_us)},
          {"default_us", positive(device.default_us)},
          {"temperature_c", number(device.card.temperature_c)},
          {"sm_clock_mhz", number(device.card.sm_clock_mhz)},
          {"power_w", number(device.card.power_w)},
          {"governor", device.governor.state},
          {"governor_reason", device.governor.reason},
          {"pause_reason", device.pause_reason},
          {"estimated", device.estimated}};
}

void from_json(const Json& json, DeviceProgress& device) {
  device = {};
  if (!json.is_object()) {
    return;
  }
  read(json, "device", device.device);
  read(json, "name", device.name);
  read(json, "problem", device.problem);
  read(json, "label", device.label);
  read(json, "problem_index", device.place.index);
  read(json, "problem_count", device.place.count);
  read(json, "stage", device.stage);
  read(json, "done", device.done);
  read(json, "planned", device.planned);
  read(json, "best_us", device.best_us);
  read(json, "default_us", device.default_us);
  read(json, "temperature_c", device.card.temperature_c);
  read(json, "sm_clock_mhz", device.card.sm_clock_mhz);
  read(json, "power_w", device.card.power_w);
  read(json, "governor", device.governor.state);
  read(json, "governor_reason", device.governor.reason);
  read(json, "pause_reason", device.pause_reason);
  device.estimated = json.value("estimated", Json()).get<EstimatedDefaults>();
}

void to_json(Json& json, const SweepView& sweep) {
  json = {{"devices", sweep.devices},
          {"compiling", sweep.compiling},
          {"compile_workers", sweep.compile_workers},
          {"problems_done", sweep.problems_done},
          {"problems", sweep.problems},
          {"problems_untried", sweep.problems_untried},
          {"not_reached", sweep.not_reached},
          {"no_time", sweep.no_time},
          {"provisional", sweep.provisional},
          {"elapsed_s", number(sweep.elapsed_s)},
          {"eta_s", number(sweep.eta_s)},
          {"budget_left_s", number(sweep.budget_left_s)}};
  for_each_count(sweep, [&](const TrialCount& count, std::int64_t number_of) { json[count.name] = number_of; });
}

void from_json(const Json& json, SweepView& sweep) {
  sweep = {};
  if (!json.is_object()) {
    return;
  }
  const auto devices = json.find("devices");
  if (devices != json.end() && devices->is_array()) {
    sweep.devices = devices->get<std::vector<DeviceProgress>>();
  }
  for_each_count(sweep, [&](const TrialCount& count, std::int64_t& number_of) { read(json, count.name, number_of); });
  read(json, "compiling", sweep.compiling);
  read(json, "compile_workers", sweep.compile_workers);
  read(json, "problems_done", sweep.problems_done);
  read(json, "problems", sweep.problems);
  read(json, "problems_untried", sweep.problems_untried);
  read(json, "not_reached", sweep.not_reached);
  read(json, "no_time", sweep.no_time);
  read(json, "provisional", sweep.provisional);
  read(json, "elapsed_s", sweep.elapsed_s);
  read(json, "eta_s", sweep.eta_s);
  read(json, "budget_left_s", sweep.budget_left_s);
}

std::string session_progress_text(const DeviceProgress& device, const SweepView& sweep) {
  Json whole = sweep;
  whole.erase("devices");
  return Json{{"device", device}, {"sweep", std::move(whole)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<SweepView> read_session_progress(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || (!json.contains("device") && !json.contains("sweep"))) {
    return std::nullopt;
  }
  SweepView sweep = json.value("sweep", Json::object()).get<SweepView>();
  sweep.devices = {json.value("device", Json::object()).get<DeviceProgress>()};
  return sweep;
}

}  // namespace pascaline
