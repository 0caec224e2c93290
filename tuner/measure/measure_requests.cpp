#include "tuner/measure/measure_requests.hpp"

#include <string>

#include "tuner/measure/measure_messages.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

json values_of(const Problem& problem) {
  json values = json::array();
  for (const auto& [name, value] : problem.dimensions) {
    values.push_back({name, std::to_string(value)});
  }
  for (const auto& [name, type] : problem.types) {
    values.push_back({name, name_of(type)});
  }
  if (!problem.data.empty()) {
    values.push_back({kDataName, problem.data});
  }
  return values;
}

json named_files(const GivenFiles::Named& files) {
  json named = json::array();
  for (const auto& [argument, file] : files) {
    named.push_back({argument, file.string()});
  }
  return named;
}

json or_null(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

}  // namespace

json setup_request(const MeasureClientOptions& options, const std::optional<double>& ends_at_s) {
  return {{"do", "setup"},
          {"device", options.device},
          {"target", options.target},
          {"database", options.kernels.database ? json(options.kernels.database->string()) : json(nullptr)},
          {"kernels", options.kernels.kernels.string()},
          {"spaces", options.kernels.spaces.string()},
          {"nvrtc", options.kernels.nvrtc},
          {"cache", options.kernels.cache.string()},
          {"measure", options.measure},
          {"governor", options.governor},
          {"sensors", options.sensors.string()},
          {"ends_at_s", or_null(ends_at_s)}};
}

json problem_request(const MeasureProblem& problem) {
  return {{"do", "problem"},
          {"space", problem.space->json},
          {"name", problem.space->file},
          {"values", values_of(problem.problem)},
          {"reference", problem.reference ? json(problem.reference->binary) : json(nullptr)},
          {"reference_config", problem.reference ? problem.reference->config.json() : json(nullptr)},
          {"seed", problem.seed},
          {"given", {{"inputs", named_files(problem.given.inputs)}, {"answers", named_files(problem.given.answers)}}}};
}

json trial_request(const TrialJob& job, const std::optional<double>& ends_at_s) {
  return {{"do", "trial"},        {"id", job.id},           {"config", job.blank.config.json()},
          {"binary", job.binary}, {"best_us", job.best_us}, {"ends_at_s", or_null(ends_at_s)}};
}

json finals_request(const FinalsJob& job, const std::optional<double>& ends_at_s) {
  json finalists = json::array();
  for (const auto& [blank, binary] : job.finalists) {
    finalists.push_back({{"config", blank.config.json()}, {"binary", binary}});
  }
  return {{"do", "finals"},
          {"id", job.id},
          {"finalists", finalists},
          {"options", job.options},
          {"ends_at_s", or_null(ends_at_s)}};
}

}  // namespace pascaline
