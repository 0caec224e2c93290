#include "db/exchange/write.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/util/csv.hpp"
#include "db/exchange/readers.hpp"

namespace pascaline {
namespace {

using nlohmann::ordered_json;

// Milliseconds that, times 1000, are these microseconds, wherever there is such a number.
double milliseconds_of(double time_us) {
  const double plain = time_us / 1000;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double candidate : {plain, std::nextafter(plain, 0.0), std::nextafter(plain, kInfinity)}) {
    if (candidate * 1000 == time_us) {
      return candidate;
    }
  }
  return plain;
}

std::string_view invalidity_of(TrialStatus status) {
  switch (status) {
    case TrialStatus::ok:
    case TrialStatus::dropped:
      return "correct";
    case TrialStatus::rejected:
      return "constraints";
    case TrialStatus::compile_failed:
      return "compile";
    case TrialStatus::wrong_result:
      return "correctness";
    case TrialStatus::timed_out:
      return "timeout";
    case TrialStatus::launch_failed:
    case TrialStatus::crashed:
      break;
  }
  return "runtime";
}

// What Kernel Tuner puts where a failed configuration's measurement would be.
std::string_view failure_class(TrialStatus status) {
  if (status == TrialStatus::rejected) {
    return "InvalidConfig";
  }
  return status == TrialStatus::compile_failed ? "CompilationFailedConfig" : "RuntimeFailedConfig";
}

ordered_json configuration_of(const RecordedSpace& space, const RecordedTrial& trial) {
  ordered_json out = ordered_json::object();
  for (std::size_t i = 0; i < space.parameters.size(); ++i) {
    const RecordedParameter& parameter = space.parameters[i];
    std::visit([&](const auto& value) { out[parameter.name] = value; }, parameter.values.at(trial.indices.at(i)));
  }
  return out;
}

ordered_json times_of(const RecordedTrial& trial) {
  ordered_json times{{"compilation_time", trial.compile_ms}, {"compilation", trial.compile_ms},
                     {"benchmark", trial.measure_ms},        {"framework", trial.framework_ms},
                     {"search_algorithm", trial.search_ms},  {"validation", trial.verify_ms}};
  if (!trial.samples_us.empty()) {
    ordered_json& runtimes = times["runtimes"] = ordered_json::array();
    for (const double sample_us : trial.samples_us) {
      runtimes.push_back(milliseconds_of(sample_us));
    }
  }
  return times;
}

ordered_json result_of(const RecordedSpace& space, const RecordedTrial& trial) {
  const bool ok = trial.status == TrialStatus::ok;
  ordered_json result = ordered_json::object();
  if (trial.started_unix_ms != 0) {
    result["timestamp"] = timestamp_of(trial.started_unix_ms);
  }
  result["configuration"] = configuration_of(space, trial);
  result["times"] = times_of(trial);
  result["invalidity"] = invalidity_of(trial.status);
  result["correctness"] = ok ? 1 : 0;
  ordered_json value = failure_class(trial.status);
  if (ok) {
    value = milliseconds_of(trial.time_us);
  } else {
    result["pascaline"] = {{"status", name_of(trial.status)}, {"reason", trial.reason}};
  }
  result["measurements"] = ordered_json::array({{{"name", "time"}, {"value", value}, {"unit", "milliseconds"}}});
  result["objectives"] = ordered_json::array({"time"});
  return result;
}

std::string cell_of(const Value& value) {
  const auto* flag = std::get_if<bool>(&value);
  return flag != nullptr ? (*flag ? "True" : "False") : csv_field(to_text(value));
}

std::string_view status_cell(TrialStatus status) {
  return status == TrialStatus::ok || status == TrialStatus::crashed ? name_of(status) : invalidity_of(status);
}

}  // namespace

std::string t4_json(const RecordedSpace& space) {
  ordered_json document{{"schema_version", "1.0.0"}, {"metadata", {{"timeunit", "milliseconds"}}}};
  for (const auto& [key, text] : {std::pair("kernel_name", &space.kernel),
                                  {"device_name", &space.device},
                                  {"problem_size", &space.problem_size}}) {
    if (!text->empty()) {
      document["metadata"][key] = *text;
    }
  }
  ordered_json& results = document["results"] = ordered_json::array();
  for (const RecordedTrial& trial : space.trials) {
    results.push_back(result_of(space, trial));
  }
  return document.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string recorded_csv(const RecordedSpace& space) {
  std::string out;
  for (const RecordedParameter& parameter : space.parameters) {
    out += csv_field(parameter.name) + ',';
  }
  out += "time_ms,status,eval_cost_ms\n";
  for (const RecordedTrial& trial : space.trials) {
    for (std::size_t i = 0; i < space.parameters.size(); ++i) {
      out += cell_of(space.parameters[i].values.at(trial.indices.at(i))) + ',';
    }
    const bool ok = trial.status == TrialStatus::ok;
    out += fmt::format("{},{},{}\n", ok ? fmt::format("{}", milliseconds_of(trial.time_us)) : "",
                       status_cell(trial.status), trial.cost_ms());
  }
  return out;
}

}  // namespace pascaline
