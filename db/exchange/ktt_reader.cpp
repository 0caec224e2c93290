#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "db/exchange/readers.hpp"
#include "db/exchange/space_builder.hpp"

namespace pascaline {
namespace {

// A configuration is a list of names and values.
std::map<std::string, Value> ktt_configuration(const JsonNode& list) {
  std::map<std::string, Value> settings;
  for (std::size_t i = 0; i < list.array_size(); ++i) {
    const std::string name = list.at(i).at("Name").name();
    if (!settings.emplace(name, value_of(list.at(i).at("Value"))).second) {
      list.at(i).fail(fmt::format("the parameter '{}' is a duplicate", name));
    }
  }
  return settings;
}

class KttReader {
 public:
  KttReader(const nlohmann::json& document, const std::string& file) : root_(document, file), builder_("ktt") {
    builder_.space().name = space_name(file);
  }

  RecordedSpace read() {
    const JsonNode metadata = root_.at("Metadata");
    const JsonNode unit = metadata.at("TimeUnit");
    unit_us_ = microseconds_of(unit.text());
    if (unit_us_ == 0) {
      unit.fail(fmt::format("unknown unit '{}'", unit.text()));
    }
    builder_.space().device = member_text(metadata, "Device");
    const JsonNode results = root_.at("Results");
    for (std::size_t i = 0; i < results.array_size(); ++i) {
      read_result(results.at(i));
    }
    builder_.require_trials([&](const std::string& problem) { results.fail(problem); });
    return builder_.finish();
  }

 private:
  void read_result(const JsonNode& result) {
    const auto complain = [&](const std::string& problem) { result.fail(problem); };
    const JsonNode configuration = result.at("Configuration");
    const std::map<std::string, Value> settings = ktt_configuration(configuration);
    RecordedSpace& space = builder_.space();
    if (builder_.parameters() == 0) {
      space.kernel = member_text(result, "KernelName");
      for (const auto& [name, value] : settings) {
        builder_.add_parameter(name, {}, complain);
      }
    }
    std::vector<Value> values;
    for (const RecordedParameter& parameter : space.parameters) {
      const auto found = settings.find(parameter.name);
      if (found == settings.end() || settings.size() != builder_.parameters()) {
        configuration.fail("its parameters are not those of the first result");
      }
      values.push_back(found->second);
    }
    if (member_text(result, "KernelName") != space.kernel) {
      result.at("KernelName").fail("it differs from that of the first result; only a file with one kernel can be read");
    }
    RecordedTrial trial;
    const std::string status = result.at("Status").text();
    if (status != "Ok") {
      trial.status = status_of_failure(status).value_or(TrialStatus::launch_failed);
      trial.reason = one_line(status);
    } else {
      trial.time_us = positive_time(result, "TotalDuration", unit_us_).value_or(0);
    }
    if (status == "Ok" && trial.time_us == 0) {
      builder_.leave_out();
      return;
    }
    builder_.add(std::move(trial), values, result.pointer(), complain);
  }

  JsonNode root_;
  SpaceBuilder builder_;
  double unit_us_ = 0;
};

}  // namespace

RecordedSpace parse_ktt(const JsonOutline& outline, const std::string& file) {
  const nlohmann::json document = parse_json(outline.text, file);
  return KttReader(document, file).read();
}

}  // namespace pascaline
