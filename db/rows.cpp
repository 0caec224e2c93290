#include "db/rows.hpp"

namespace pascaline {
namespace {

using OrderedJson = nlohmann::ordered_json;

int small(Query& row) { return static_cast<int>(row.integer()); }

Resources read_resources(Query& row) {
  Resources resources;
  resources.registers = small(row);
  resources.static_shared_bytes = small(row);
  resources.constant_bytes = small(row);
  resources.local_bytes = small(row);
  resources.local_loads = small(row);
  resources.local_stores = small(row);
  resources.instructions = small(row);
  resources.ffma = small(row);
  return resources;
}

}  // namespace

Problem read_problem(Query& row) {
  Problem problem;
  problem.kernel = row.text();
  const OrderedJson dimensions = OrderedJson::parse(row.text());
  for (const auto& [name, value] : dimensions.items()) {
    problem.dimensions.emplace_back(name, value.get<std::int64_t>());
  }
  const OrderedJson types = OrderedJson::parse(row.text());
  for (const auto& [name, value] : types.items()) {
    const auto type = value.get<std::string>();
    problem.types.emplace_back(name, known(element_type_from(type), type));
  }
  return problem;
}

DeviceRow read_device(Query& row) {
  DeviceRow device;
  device.kind = row.text();
  device.name = row.text();
  device.compute_capability = row.text();
  device.sm_count = row.integer();
  device.memory_bytes = static_cast<std::uint64_t>(row.integer());
  device.limits_json = row.text();
  return device;
}

ToolkitRow read_toolkit(Query& row) {
  ToolkitRow toolkit;
  toolkit.compiler = row.text();
  toolkit.version = row.text();
  toolkit.target = row.text();
  toolkit.driver_version = row.text();
  return toolkit;
}

std::optional<TimeSummary> read_summary(Query& row) {
  const auto median = row.optional_real();
  TimeSummary summary;
  summary.median_us = median.value_or(0);
  summary.low_us = row.real();
  summary.high_us = row.real();
  summary.count = small(row);
  return median ? std::optional(summary) : std::nullopt;
}

Trial read_trial(Query& row) {
  Trial trial;
  trial.problem = read_problem(row);
  trial.config = Config::from_json(nlohmann::json::parse(row.text()));
  const std::string status = row.text();
  trial.status = known(trial_status_from(status), status);
  const std::string stage = row.text();
  trial.stage = known(trial_stage_from(stage), stage);
  trial.is_default = row.flag();
  trial.reason = row.text();
  trial.resources = read_resources(row);
  trial.occupancy = row.real();
  trial.binary_hash = row.text();
  trial.max_error = row.optional_real();
  trial.time = read_summary(row);
  trial.compile_ms = row.real();
  trial.verify_ms = row.real();
  trial.measure_ms = row.real();
  trial.started_unix_ms = row.integer();
  trial.canary_us = row.optional_real();
  trial.clock_scale = row.real();
  trial.energy_mj = row.optional_real();
  trial.shared_trial = row.optional_integer().value_or(0);
  return trial;
}

ProcessIdentity read_process(Query& row) {
  ProcessIdentity process;
  process.process_id = row.integer();
  process.start = row.integer();
  process.boot_id = row.text();
  return process;
}

std::string dimensions_json(const Problem& problem) {
  OrderedJson object = OrderedJson::object();
  for (const auto& [name, value] : problem.dimensions) {
    object[name] = value;
  }
  return object.dump();
}

std::string types_json(const Problem& problem) {
  OrderedJson object = OrderedJson::object();
  for (const auto& [name, type] : problem.types) {
    object[name] = std::string(name_of(type));
  }
  return object.dump();
}

}  // namespace pascaline
