#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "db/exchange/readers.hpp"
#include "db/exchange/space_builder.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

bool is_version_1(std::string_view version) {
  int points = 0;
  for (std::size_t i = 0; i < version.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(version[i])) != 0;
    const bool point = version[i] == '.' && i > 0 && i + 1 < version.size() && version[i - 1] != '.';
    points += point ? 1 : 0;
    if (!digit && !point) {
      return false;
    }
  }
  return points == 2 && version.starts_with("1.");
}

class T4Reader {
 public:
  T4Reader(const json& document, const std::string& file) : root_(document, file), file_(file), builder_("t4") {}

  RecordedSpace read() {
    const JsonNode version = root_.at("schema_version");
    if (!is_version_1(version.text())) {
      version.fail(fmt::format("version '{}' of T4 results is unknown; known is 1.x.x", version.text()));
    }
    read_metadata();
    const JsonNode results = root_.at("results");
    if (results.array_size() == 0) {
      results.fail("there is no result");
    }
    read_names(results.at(0).at("configuration"));
    for (std::size_t i = 0; i < results.array_size(); ++i) {
      read_result(results.at(i));
    }
    builder_.require_trials([&](const std::string& problem) { results.fail(problem); });
    return builder_.finish();
  }

 private:
  void read_metadata() {
    RecordedSpace& space = builder_.space();
    space.name = space_name(file_);
    if (!root_.has("metadata")) {
      return;
    }
    const JsonNode metadata = root_.at("metadata");
    if (metadata.has("timeunit")) {
      unit_us_ = microseconds_of(metadata.at("timeunit").text());
      if (unit_us_ == 0) {
        metadata.at("timeunit")
            .fail(fmt::format("unknown unit '{}'; known are milliseconds, microseconds and seconds",
                              metadata.at("timeunit").text()));
      }
    }
    space.kernel = written(metadata, "kernel_name");
    space.device = written(metadata, "device_name");
    space.problem_size = written(metadata, "problem_size");
  }

  void read_names(const JsonNode& configuration) {
    if (!configuration.value().is_object() || configuration.value().empty()) {
      configuration.fail("expected an object of parameters");
    }
    for (auto member = configuration.value().begin(); member != configuration.value().end(); ++member) {
      builder_.add_parameter(member.key(), {}, [&](const std::string& problem) { configuration.fail(problem); });
      names_.push_back(member.key());
    }
  }

  void read_result(const JsonNode& result) {
    const std::vector<Value> values = read_values(result.at("configuration"));
    RecordedTrial trial;
    read_times(result.at("times"), trial);
    read_correctness(result.at("correctness"));
    read_status(result, trial);
    if (trial.status == TrialStatus::ok && (!read_runtimes(result.at("times"), trial) || !read_time(result, trial))) {
      builder_.leave_out();
      return;
    }
    trial.started_unix_ms = unix_ms_of(written(result, "timestamp"));
    builder_.add(std::move(trial), values, result.pointer(), [&](const std::string& problem) { result.fail(problem); });
  }

  [[nodiscard]] std::vector<Value> read_values(const JsonNode& configuration) const {
    std::vector<Value> values;
    for (const std::string& name : names_) {
      if (!configuration.has(name)) {
        configuration.fail(fmt::format("the parameter '{}' of the first result is missing", name));
      }
      values.push_back(value_of(configuration.at(name)));
    }
    for (auto member = configuration.value().begin(); member != configuration.value().end(); ++member) {
      if (!std::binary_search(names_.begin(), names_.end(), member.key())) {  // JSON objects are sorted here
        configuration.at(member.key()).fail("the first result has no such parameter");
      }
    }
    return values;
  }

  static void read_correctness(const JsonNode& node) {
    if (!node.value().is_number() && !node.value().is_boolean()) {
      node.fail(fmt::format("expected a number, found {}", node.value().type_name()));
    }
  }

  void read_times(const JsonNode& times, RecordedTrial& trial) const {
    if (!times.value().is_object()) {
      times.fail(fmt::format("expected an object, found {}", times.value().type_name()));
    }
    const double unit_ms = unit_us_ / 1000;
    trial.compile_ms = duration_of(times, times.has("compilation_time") ? "compilation_time" : "compilation", unit_ms);
    trial.verify_ms = duration_of(times, "validation", unit_ms);
    trial.measure_ms = duration_of(times, "benchmark", unit_ms);
    trial.framework_ms = duration_of(times, "framework", unit_ms);
    trial.search_ms = duration_of(times, "search_algorithm", unit_ms);
  }

  // False if one is none.
  bool read_runtimes(const JsonNode& times, RecordedTrial& trial) const {
    if (!times.has("runtimes")) {
      return true;
    }
    const auto runtimes = positive_times(times.at("runtimes"), unit_us_);
    if (!runtimes) {
      return false;
    }
    trial.samples_us = *runtimes;
    const double sum_us = std::accumulate(runtimes->begin(), runtimes->end(), 0.0);
    // Where no benchmark time is told, the launches themselves are what measuring is known to have cost.
    if (!times.has("benchmark")) {
      trial.measure_ms = sum_us / 1000;
    }
    return true;
  }

  static void read_status(const JsonNode& result, RecordedTrial& trial) {
    const JsonNode invalidity = result.at("invalidity");
    const std::string word = invalidity.text();
    if (word == "correct") {
      return;
    }
    const auto status = status_of_failure(word);
    if (!status || trial_status_from(word)) {
      invalidity.fail(fmt::format("'{}' is none of timeout, compile, runtime, correctness, constraints and correct",
                                  word.substr(0, 60)));
    }
    trial.status = *status;
    read_reason(result, trial);
  }

  // What Pascaline writes beside the format's own words, or the text that stands for a measurement.
  static void read_reason(const JsonNode& result, RecordedTrial& trial) {
    if (result.has("pascaline")) {
      const JsonNode own = result.at("pascaline");
      const auto exact = trial_status_from(member_text(own, "status"));
      if (exact == TrialStatus::crashed && trial.status == TrialStatus::launch_failed) {
        trial.status = TrialStatus::crashed;
      }
      trial.reason = one_line(member_text(own, "reason"));
      return;
    }
    const auto measured = measurement(result, objective(result));
    if (measured && measured->has("value") && measured->at("value").value().is_string() &&
        !unreal_number(measured->at("value").value())) {
      trial.reason = one_line(measured->at("value").text());
    }
  }

  static std::string objective(const JsonNode& result) {
    if (!result.has("objectives") || result.at("objectives").array_size() == 0) {
      return "time";
    }
    return result.at("objectives").at(std::size_t{0}).text();
  }

  static std::optional<JsonNode> measurement(const JsonNode& result, std::string_view name) {
    if (!result.has("measurements")) {
      return std::nullopt;
    }
    const JsonNode list = result.at("measurements");
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      if (list.at(i).at("name").text() == name) {
        return list.at(i);
      }
    }
    return std::nullopt;
  }

  // False if it is none.
  bool read_time(const JsonNode& result, RecordedTrial& trial) const {
    for (const std::string& name : {objective(result), std::string("time")}) {
      const auto measured = measurement(result, name);
      if (!measured) {
        continue;
      }
      const std::string unit = member_text(*measured, "unit");
      // A rate such as GFLOP/s is no time.
      const double unit_us = unit.empty() && name.find('/') == std::string::npos ? unit_us_ : microseconds_of(unit);
      if (unit_us > 0) {
        trial.time_us = positive_time(*measured, "value", unit_us).value_or(0);
        return trial.time_us > 0;
      }
    }
    if (trial.samples_us.empty()) {
      result.fail("a correct result has neither a measurement of its objective nor runtimes");
    }
    double sum = 0;
    for (const double sample : trial.samples_us) {
      sum += sample;
    }
    trial.time_us = sum / static_cast<double>(trial.samples_us.size());
    return std::isfinite(trial.time_us);
  }

  JsonNode root_;
  const std::string& file_;
  SpaceBuilder builder_;
  std::vector<std::string> names_;
  double unit_us_ = 1000;
};

}  // namespace

RecordedSpace parse_t4(const JsonOutline& outline, const std::string& file) {
  const json document = parse_json(outline.text, file);
  return T4Reader(document, file).read();
}

}  // namespace pascaline
