#include "tuner/fleet/fleet_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/util/json_reader.hpp"
#include "core/util/paths.hpp"

namespace pascaline {
namespace {

constexpr int kFleetFormat = 1;

nlohmann::ordered_json problem_json(const PlannedProblem& planned) {
  nlohmann::ordered_json json;
  json["kernel"] = planned.problem.kernel;
  json["dimensions"] = nlohmann::ordered_json::object();
  for (const auto& [name, value] : planned.problem.dimensions) {
    json["dimensions"][name] = value;
  }
  json["types"] = nlohmann::ordered_json::object();
  for (const auto& [name, type] : planned.problem.types) {
    json["types"][name] = name_of(type);
  }
  json["calls"] = planned.count;
  if (!planned.part.is_whole()) {
    json["part"] = planned.part.text();
  }
  if (!planned.label.empty()) {
    json["label"] = planned.label;
  }
  for (const PhaseCalls& phase : planned.phases) {
    json["phases"].push_back({{"phase", phase.phase}, {"calls", phase.count}});
  }
  return json;
}

SpacePart part_from(const JsonNode& node) {
  try {
    const Shard part = parse_shard(node.text());
    return {part.index, part.count};
  } catch (const Error&) {
    node.fail("is not a part of a space, as 1/2");
  }
}

// In the order of the file, which is the space's: the problem's text, which it is stored under, follows it.
PlannedProblem problem_from(const JsonNode& node, const nlohmann::ordered_json& in_order) {
  node.only_keys({"kernel", "dimensions", "types", "calls", "part", "label", "phases"});
  PlannedProblem planned;
  planned.problem.kernel = node.at("kernel").name();
  const JsonNode dimensions = node.at("dimensions");
  (void)dimensions.keys();
  for (const auto& [name, value] : in_order.at("dimensions").items()) {
    planned.problem.dimensions.emplace_back(name, dimensions.at(name).integer());
  }
  const JsonNode types = node.at("types");
  (void)types.keys();
  for (const auto& [name, value] : in_order.at("types").items()) {
    const auto type = element_type_from(types.at(name).text());
    if (!type) {
      types.at(name).fail("is not an element type");
    }
    planned.problem.types.emplace_back(name, *type);
  }
  planned.count = node.at("calls").real();
  if (!(planned.count >= 0)) {
    node.at("calls").fail("a number of calls is at least 0");
  }
  if (node.has("part")) {
    planned.part = part_from(node.at("part"));
  }
  planned.label = node.has("label") ? node.at("label").text() : "";
  if (node.has("phases")) {
    const JsonNode phases = node.at("phases");
    for (std::size_t i = 0; i < phases.array_size(); ++i) {
      planned.phases.push_back({phases.at(i).at("phase").name(), phases.at(i).at("calls").real()});
    }
  }
  return planned;
}

void read_shards(const JsonNode& node, const nlohmann::ordered_json& in_order, Fleet& fleet) {
  const JsonNode shards = node.at("shards");
  const std::size_t count = shards.array_size();
  if (count < 1 || count > static_cast<std::size_t>(kMostShards)) {
    shards.fail(fmt::format("a fleet has 1 to {} shards", kMostShards));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const JsonNode shard = shards.at(i);
    shard.only_keys({"shard", "expected_s", "problems"});
    if (shard.at("shard").integer() != static_cast<std::int64_t>(i) + 1) {
      shard.at("shard").fail(fmt::format("shards are in order, and this is number {}", i + 1));
    }
    FleetShard& read = fleet.shards.emplace_back();
    read.expected_s = shard.at("expected_s").real();
    const JsonNode problems = shard.at("problems");
    for (std::size_t j = 0; j < problems.array_size(); ++j) {
      read.problems.push_back(problem_from(problems.at(j), in_order.at("shards").at(i).at("problems").at(j)));
    }
    if (read.problems.empty()) {
      problems.fail("a shard has at least one problem");
    }
  }
}

// Each problem is in one shard, or each part of its space in another one.
void check_parts(const JsonNode& node, const Fleet& fleet) {
  std::map<std::string, std::vector<SpacePart>> parts;
  for (const FleetShard& shard : fleet.shards) {
    for (const PlannedProblem& planned : shard.problems) {
      if (planned.count > 0) {
        parts[planned.problem.text()].push_back(planned.part);
      }
    }
  }
  for (auto& [problem, found] : parts) {
    std::ranges::sort(found, {}, &SpacePart::index);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] != SpacePart{static_cast<int>(i) + 1, static_cast<int>(found.size())}) {
        node.fail(fmt::format("the parts of {} are not all there, each once", problem));
      }
    }
  }
}

}  // namespace

std::filesystem::path fleet_file(const std::filesystem::path& folder) { return folder / "fleet.json"; }

std::filesystem::path shard_database(const std::filesystem::path& folder, int shard) {
  return folder / fmt::format("shard-{:04}.db", shard);
}

std::string fleet_text(const Fleet& fleet) {
  nlohmann::ordered_json json;
  json["format"] = kFleetFormat;
  json["fleet"] = fleet.id;
  json["planned_unix_ms"] = fleet.planned_unix_ms;
  json["program"] = fleet.program;
  json["budget_s"] = fleet.budget_s;
  json["options"] = nlohmann::ordered_json::array();
  for (const auto& [option, value] : fleet.options) {
    json["options"].push_back({option, value});
  }
  json["kernels"] = nlohmann::ordered_json::array();
  for (const PlannedKernel& kernel : fleet.kernels) {
    json["kernels"].push_back(
        {{"kernel", kernel.name}, {"source_hash", kernel.source_hash}, {"space_hash", kernel.space_hash}});
  }
  json["shards"] = nlohmann::ordered_json::array();
  for (int shard = 1; shard <= fleet.count(); ++shard) {
    const FleetShard& part = fleet.shards[static_cast<std::size_t>(shard - 1)];
    nlohmann::ordered_json problems = nlohmann::ordered_json::array();
    for (const PlannedProblem& problem : part.problems) {
      problems.push_back(problem_json(problem));
    }
    nlohmann::ordered_json one;
    one["shard"] = shard;
    one["expected_s"] = part.expected_s;
    one["problems"] = std::move(problems);
    json["shards"].push_back(std::move(one));
  }
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Fleet load_fleet(const std::filesystem::path& file) {
  const std::string name = file.string();
  const std::string text = read_space_file(file);
  const nlohmann::json json = parse_json(text, name);
  const nlohmann::ordered_json in_order = nlohmann::ordered_json::parse(text);
  const JsonNode node(json, name);
  if (node.at("format").integer() != kFleetFormat) {
    node.at("format").fail(
        fmt::format("this program reads fleets of format {}: use the one that planned it", kFleetFormat));
  }
  node.only_keys({"format", "fleet", "planned_unix_ms", "program", "budget_s", "options", "kernels", "shards"});
  Fleet fleet;
  fleet.id = node.at("fleet").name();
  fleet.planned_unix_ms = node.at("planned_unix_ms").integer();
  fleet.program = node.at("program").name();
  fleet.budget_s = node.at("budget_s").real();
  const JsonNode options = node.at("options");
  for (std::size_t i = 0; i < options.array_size(); ++i) {
    const JsonNode option = options.at(i);
    if (option.array_size() != 2 || !option.at(0).text().starts_with("--")) {
      option.fail("an option is a pair of its name, with --, and its value");
    }
    fleet.options.emplace_back(option.at(0).text(), option.at(1).text());
  }
  const JsonNode kernels = node.at("kernels");
  for (std::size_t i = 0; i < kernels.array_size(); ++i) {
    const JsonNode kernel = kernels.at(i);
    fleet.kernels.push_back(
        {kernel.at("kernel").name(), kernel.at("source_hash").name(), kernel.at("space_hash").name()});
  }
  read_shards(node, in_order, fleet);
  check_parts(node.at("shards"), fleet);
  return fleet;
}

}  // namespace pascaline
