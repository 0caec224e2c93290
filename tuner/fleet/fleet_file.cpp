#include "tuner/fleet/fleet_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/json_reader.hpp"
#include "core/util/paths.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline {
namespace {

constexpr int kFleetFormat = 1;

nlohmann::ordered_json options_json(const OptionWords& options) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const auto& [option, value] : options) {
    json.push_back({option, value});
  }
  return json;
}

// Pairs of an option's name and its value.
OptionWords options_from(const JsonNode& node) {
  OptionWords options;
  for (std::size_t i = 0; i < node.array_size(); ++i) {
    const JsonNode option = node.at(i);
    if (option.array_size() != 2 || !option.at(0).text().starts_with("--")) {
      option.fail("an option is a pair of its name, with --, and its value");
    }
    options.emplace_back(option.at(0).text(), option.at(1).text());
  }
  return options;
}

void require_file_options(const JsonNode& node, const OptionWords& options) {
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (const auto why = why_no_file_option(options[i].first, options[i].second)) {
      node.at(i).fail(fmt::format("{} {}", options[i].first, *why));
    }
  }
}

std::string hash_from(const JsonNode& node) {
  std::string text = node.name();
  if (const auto why = why_no_hash(text)) {
    node.fail(fmt::format("'{}' {}", text, *why));
  }
  return text;
}

std::string kernel_from(const JsonNode& node) {
  std::string name = node.name();
  if (const auto why = why_no_kernel_name(name)) {
    node.fail(fmt::format("'{}' {}", name, *why));
  }
  return name;
}

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
  planned.problem.kernel = kernel_from(node.at("kernel"));
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
  if (count < 1 || count > static_cast<std::size_t>(kMaxFleetShards)) {
    shards.fail(fmt::format("a fleet has 1 to {} shards", kMaxFleetShards));
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

void require_own_file(const std::filesystem::path& file) {
  std::error_code unseen;
  const auto status = std::filesystem::symlink_status(file, unseen);
  if (!std::filesystem::exists(status)) {
    return;
  }
  const bool is_plain = std::filesystem::is_regular_file(status);
  if (!is_plain || std::filesystem::hard_link_count(file, unseen) > 1) {
    throw ForeignFileError(
        fmt::format("{} is {}, so writing to it could change another file: remove it, then run this again",
                    file.string(), is_plain ? "a file with a second name (hard link)" : "a link or not a plain file"));
  }
}

// The option's value, or the usual one.
std::string value_or(const OptionWords& options, std::string_view option, const std::string& usual) {
  const auto found = std::ranges::find(options, option, [](const auto& one) { return std::string_view(one.first); });
  return found == options.end() ? usual : found->second;
}

template <typename T>
T number_or(const OptionWords& options, std::string_view option, T usual) {
  const std::string text = value_or(options, option, std::to_string(usual));
  T value{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size()) {
    throw Error(fmt::format("{} has the value '{}', which is not a whole number", option, text));
  }
  return value;
}

// As a sweep with these options makes them.
int trials_of(const OptionWords& options) {
  const SweepOptions usual;
  const bool has_no_end = !value_or(options, "--budget", "").empty() ||
                          value_or(options, "--searcher", usual.search.searcher) == kNoSearcher;
  return number_or(options, "--trials", has_no_end ? kUnlimitedTrials : usual.trials);
}

void require_own_id(const JsonNode& node, const Fleet& fleet) {
  std::string own;
  try {
    own = id_of(fleet);
  } catch (const Error& error) {
    node.at("options").fail(error.what());
  }
  if (own != fleet.id) {
    node.at("fleet").fail(fmt::format(
        "the id does not match this plan, whose id is {}: the file was changed after `fleet plan` wrote it; "
        "copy the original again, or plan again in another folder",
        own));
  }
}

}  // namespace

std::string id_of(const Fleet& fleet) {
  const SweepOptions usual;
  FleetWhole whole{value_or(fleet.options, "--searcher", usual.search.searcher),
                   number_or<std::uint64_t>(fleet.options, "--seed", 1), trials_of(fleet.options),
                   value_or(fleet.options, "--objective", std::string(name_of(Objective::time))), fleet.count()};
  for (const FleetShard& shard : fleet.shards) {
    for (const PlannedProblem& planned : shard.problems) {
      if (planned.count > 0) {
        whole.add(planned.problem.text(), planned.count);
      }
    }
  }
  return whole.id();
}

std::filesystem::path fleet_file(const std::filesystem::path& folder) { return folder / "fleet.json"; }

std::filesystem::path shard_database(const std::filesystem::path& folder, int shard) {
  return folder / fmt::format("shard-{:04}.db", shard);
}

void require_own_files(const std::filesystem::path& folder, int shard) {
  const std::filesystem::path database = shard_database(folder, shard);
  for (const char* const ending : {".db", ".db-wal", ".db-shm", ".db-journal", ".log", ".out"}) {
    auto file = database;
    require_own_file(file.replace_extension(ending));
  }
}

void require_own_folder(const std::filesystem::path& folder) {
  std::error_code unseen;
  const auto status = std::filesystem::symlink_status(folder, unseen);
  if (!std::filesystem::exists(status)) {
    return;
  }
  if (!std::filesystem::is_directory(status)) {
    throw ForeignFileError(fmt::format("{} is not a folder: remove it, then run this again", folder.string()));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    require_own_file(entry.path());
  }
}

std::string fleet_text(const Fleet& fleet) {
  nlohmann::ordered_json json;
  json["format"] = kFleetFormat;
  json["fleet"] = fleet.id;
  json["planned_unix_ms"] = fleet.planned_unix_ms;
  json["program"] = fleet.program;
  json["budget_s"] = fleet.budget_s;
  json["options"] = options_json(fleet.options);
  if (!fleet.paths.empty()) {
    json["paths"] = options_json(fleet.paths);
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
  node.only_keys(
      {"format", "fleet", "planned_unix_ms", "program", "budget_s", "options", "paths", "kernels", "shards"});
  Fleet fleet;
  fleet.id = hash_from(node.at("fleet"));
  fleet.planned_unix_ms = node.at("planned_unix_ms").integer();
  fleet.program = node.at("program").name();
  fleet.budget_s = node.at("budget_s").real();
  constexpr double kMaxBudgetS = 1e9;
  if (!(fleet.budget_s >= 0 && fleet.budget_s <= kMaxBudgetS)) {
    node.at("budget_s").fail(fmt::format("expected seconds from 0 to {:.0f}", kMaxBudgetS));
  }
  fleet.options = options_from(node.at("options"));
  require_file_options(node.at("options"), fleet.options);
  fleet.paths = node.has("paths") ? options_from(node.at("paths")) : OptionWords{};
  const JsonNode kernels = node.at("kernels");
  for (std::size_t i = 0; i < kernels.array_size(); ++i) {
    const JsonNode kernel = kernels.at(i);
    fleet.kernels.push_back(
        {kernel_from(kernel.at("kernel")), hash_from(kernel.at("source_hash")), hash_from(kernel.at("space_hash"))});
  }
  read_shards(node, in_order, fleet);
  check_parts(node.at("shards"), fleet);
  require_own_id(node, fleet);
  return fleet;
}

}  // namespace pascaline
