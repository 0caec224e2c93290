#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "db/exchange/readers.hpp"
#include "db/exchange/space_builder.hpp"

namespace pascaline {
namespace {

constexpr double kClblastUnitUs = 1000;  // of a file's millisecond

// "M=1024 N=1024 PRECISION=32", as Pascaline writes a problem.
std::string clblast_problem(const JsonNode& root) {
  std::string problem;
  for (const char* const key : {"arg_m", "arg_n", "arg_k", "arg_batch_count", "precision"}) {
    std::string name(std::string_view(key).substr(key[0] == 'a' ? 4 : 0));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    if (root.has_value(key)) {
      problem += fmt::format("{}{}={}", problem.empty() ? "" : " ", name, written(root, key));
    }
  }
  return problem;
}

}  // namespace

RecordedSpace parse_clblast(const JsonOutline& outline, const std::string& file) {
  const nlohmann::json document = parse_json(outline.text, file);
  const JsonNode root(document, file);
  const JsonNode results = root.at("results");
  if (results.array_size() == 0) {
    results.fail("there is no result");
  }
  SpaceBuilder builder("clblast");
  builder.space().name = space_name(file);
  builder.space().kernel = root.at("kernel_family").name();
  builder.space().device = member_text(root, root.has_value("clblast_device_name") ? "clblast_device_name" : "device");
  builder.space().problem_size = clblast_problem(root);
  const std::vector<std::string> names = results.at(0).at("parameters").keys();
  for (const std::string& name : names) {
    builder.add_parameter(name, {}, [&](const std::string& problem) { results.at(0).at("parameters").fail(problem); });
  }
  for (std::size_t i = 0; i < results.array_size(); ++i) {
    const JsonNode result = results.at(i);
    const JsonNode parameters = result.at("parameters");
    if (parameters.keys() != names) {
      parameters.fail("its parameters are not those of the first result");
    }
    std::vector<Value> values;
    for (const std::string& name : names) {
      values.push_back(value_of(parameters.at(name)));
    }
    RecordedTrial trial;
    trial.time_us = positive_time(result, "time", kClblastUnitUs).value_or(0);
    if (trial.time_us > 0) {
      builder.add(std::move(trial), values, result.pointer(),
                  [&](const std::string& problem) { result.fail(problem); });
    } else {
      builder.leave_out();
    }
  }
  builder.require_trials([&](const std::string& problem) { results.fail(problem); });
  return builder.finish();
}

}  // namespace pascaline
