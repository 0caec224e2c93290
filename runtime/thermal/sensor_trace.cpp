#include "runtime/thermal/sensor_trace.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/util/json_reader.hpp"

namespace pascaline {
namespace {

void read(const JsonNode& step, const char* key, std::optional<double>& value) {
  if (!step.has(key)) {
    return;
  }
  const JsonNode node = step.at(key);
  if (node.value().is_null()) {
    value.reset();
  } else {
    value = node.real();
  }
}

// `moment` comes with what held before.
void read(const JsonNode& step, SensorTrace::Moment& moment) {
  step.only_keys({"at_s", "temperature_c", "temperature_limit_c", "sm_clock_mhz", "memory_clock_mhz", "power_w",
                  "sm_clock_limit_mhz", "throttle_reasons", "canary_scale", "canary_us", "processor_c",
                  "processor_critical_c"});
  Sensors& sensors = moment.sensors;
  read(step, "temperature_c", sensors.temperature_c);
  read(step, "temperature_limit_c", sensors.temperature_limit_c);
  read(step, "sm_clock_mhz", sensors.sm_clock_mhz);
  read(step, "sm_clock_limit_mhz", sensors.sm_clock_limit_mhz);
  read(step, "memory_clock_mhz", sensors.memory_clock_mhz);
  read(step, "power_w", sensors.power_w);
  if (step.has("throttle_reasons")) {
    const JsonNode bits = step.at("throttle_reasons");
    sensors.throttle_reasons.reset();
    if (!bits.value().is_null()) {
      if (bits.integer() < 0) {
        bits.fail("expected NVML's bit mask, 0 or greater");
      }
      sensors.throttle_reasons = static_cast<std::uint64_t>(bits.integer());
    }
  }
  for (const char* key : {"canary_scale", "canary_us"}) {
    if (step.has_value(key) && !(step.at(key).real() > 0)) {
      step.at(key).fail("expected a number greater than 0");
    }
  }
  std::optional<double> scale = moment.canary_scale;
  read(step, "canary_scale", scale);
  moment.canary_scale = scale.value_or(1.0);
  read(step, "canary_us", moment.canary_us);
  read(step, "processor_c", moment.processor_c);
  read(step, "processor_critical_c", moment.processor_critical_c);
}

}  // namespace

SensorTrace SensorTrace::load(const std::filesystem::path& file) { return parse(read_space_file(file), file.string()); }

SensorTrace SensorTrace::parse(std::string_view text, const std::string& file) {
  const nlohmann::json document = parse_json(text, file);
  const JsonNode root(document, file);
  SensorTrace trace;
  if (!document.is_array()) {
    root.only_keys({"steps", "repeat_s"});
  }
  const JsonNode steps = document.is_array() ? root : root.at("steps");
  if (steps.array_size() == 0) {
    steps.fail("expected at least one step");
  }
  Step step;
  for (std::size_t i = 0; i < steps.array_size(); ++i) {
    const JsonNode at = steps.at(i).at("at_s");
    if (!(at.real() >= 0) || (i > 0 && !(at.real() > step.at_s))) {
      at.fail("steps must be in order of time, starting at 0");
    }
    step.at_s = at.real();
    read(steps.at(i), step.moment);
    trace.steps_.push_back(step);
  }
  if (document.is_object() && root.has("repeat_s")) {
    trace.repeat_s_ = root.at("repeat_s").real();
    if (!(*trace.repeat_s_ > step.at_s)) {
      root.at("repeat_s").fail(fmt::format("must be later than the last step, at {} s", step.at_s));
    }
  }
  return trace;
}

SensorTrace::Moment SensorTrace::at(double elapsed_s) const {
  const double time_s = repeat_s_ ? std::fmod(elapsed_s, *repeat_s_) : elapsed_s;
  Moment moment;
  for (const Step& step : steps_) {
    if (step.at_s <= time_s) {
      moment = step.moment;
    }
  }
  return moment;
}

}  // namespace pascaline
