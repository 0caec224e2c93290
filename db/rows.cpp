#include "db/rows.hpp"

#include "core/data_hash.hpp"
#include "core/util/shown_text.hpp"

namespace pascaline {
namespace {

using OrderedJson = nlohmann::ordered_json;

int small(Query& row) { return static_cast<int>(row.integer()); }

// Each trial that is read has names of its device, toolkit and kernel: no more of them is kept than is ever shown.
std::string name_in(Query& row) { return bounded(row.text(), kMaxShownLine); }

OrderedJson read_object(const std::string& text, std::string_view table, std::string_view column) {
  OrderedJson object = OrderedJson::parse(text, nullptr, false);
  if (!object.is_object()) {
    throw BadColumnError(table, column, text);
  }
  return object;
}

}  // namespace

Problem read_problem(Query& row) {
  Problem problem;
  problem.kernel = name_in(row);
  const std::string dimensions_text = row.text();
  const OrderedJson dimensions = read_object(dimensions_text, "problems", "dimensions");
  for (const auto& [name, value] : dimensions.items()) {
    if (!value.is_number_integer()) {
      throw BadColumnError("problems", "dimensions", dimensions_text);
    }
    problem.dimensions.emplace_back(name, value.get<std::int64_t>());
  }
  const std::string types_text = row.text();
  const OrderedJson types = read_object(types_text, "problems", "types");
  for (const auto& [name, value] : types.items()) {
    if (!value.is_string()) {
      throw BadColumnError("problems", "types", types_text);
    }
    const auto type = value.get<std::string>();
    problem.types.emplace_back(name, known(element_type_from(type), type));
  }
  problem.data = row.text();
  if (!problem.data.empty() && !is_data_hash(problem.data)) {
    throw BadColumnError("problems", "data", problem.data);
  }
  return problem;
}

Config read_config(Query& row, std::string_view table) {
  const std::string text = row.text();
  try {
    return Config::from_json(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception&) {
    throw BadColumnError(table, "config", text);
  } catch (const Error&) {
    throw BadColumnError(table, "config", text);
  }
}

DeviceRow read_device(Query& row) {
  DeviceRow device;
  device.kind = name_in(row);
  device.name = name_in(row);
  device.compute_capability = name_in(row);
  device.sm_count = row.integer();
  device.memory_bytes = static_cast<std::uint64_t>(row.integer());
  device.limits_json = row.text();
  return device;
}

ToolkitRow read_toolkit(Query& row) {
  ToolkitRow toolkit;
  toolkit.compiler = name_in(row);
  toolkit.version = name_in(row);
  toolkit.target = name_in(row);
  toolkit.driver_version = name_in(row);
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
