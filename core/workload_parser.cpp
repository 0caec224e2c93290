#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/space/launch_reader.hpp"
#include "core/util/json_reader.hpp"
#include "core/workload.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kWorkloadSchema = 1;

/// Reads a workload document part by part; every complaint names its place.
class WorkloadReader {
 public:
  WorkloadReader(const nlohmann::json& document, const std::string& file) : root_(document, file) {
    workload_.file = file;
  }

  Workload read() {
    root_.only_keys({"schema", "name", "description", "source", "types", "phases", "entries"});
    if (root_.at("schema").integer() != kWorkloadSchema) {
      root_.at("schema").fail(fmt::format("this program reads schema {}", kWorkloadSchema));
    }
    workload_.name = root_.at("name").name();
    workload_.description = root_.has("description") ? root_.at("description").text() : "";
    workload_.source = root_.has("source") ? root_.at("source").text() : "";
    if (root_.has("types")) {
      read_types(root_.at("types"));
    }
    read_phases(root_.at("phases"));
    read_entries(root_.at("entries"));
    check_alternatives();
    return std::move(workload_);
  }

 private:
  static void require_object(const JsonNode& node, const char* of) {
    if (!node.value().is_object()) {
      node.fail(fmt::format("expected an object of {}, found {}", of, node.value().type_name()));
    }
  }

  void read_types(const JsonNode& node) {
    require_object(node, "type variable and element types");
    for (const auto& [name, ignored] : node.value().items()) {
      const JsonNode list = node.at(name);
      std::vector<ElementType> types;
      for (std::size_t i = 0; i < list.array_size(); ++i) {
        types.push_back(read_element_type(list.at(i)));
        if (std::find(types.begin(), types.end() - 1, types.back()) != types.end() - 1) {
          list.at(i).fail(fmt::format("the element type {} is a duplicate", name_of(types.back())));
        }
      }
      if (types.empty()) {
        list.fail("needs at least one element type");
      }
      workload_.types.emplace_back(name, std::move(types));
    }
  }

  void read_phases(const JsonNode& list) {
    std::set<std::string> names;
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      const JsonNode node = list.at(i);
      node.only_keys({"name", "per", "symbols"});
      WorkloadPhase phase;
      phase.name = node.at("name").name();
      phase.per = node.has("per") ? node.at("per").text() : "";
      if (!names.insert(phase.name).second) {
        node.at("name").fail(fmt::format("the phase '{}' is a duplicate", phase.name));
      }
      if (node.has("symbols")) {
        read_symbols(node.at("symbols"), phase);
      }
      workload_.phases.push_back(std::move(phase));
    }
  }

  static void read_symbols(const JsonNode& node, WorkloadPhase& phase) {
    require_object(node, "symbol and values");
    for (const auto& [name, ignored] : node.value().items()) {
      const JsonNode list = node.at(name);
      std::vector<std::int64_t> values;
      for (std::size_t i = 0; i < list.array_size(); ++i) {
        values.push_back(list.at(i).integer());
        if (std::find(values.begin(), values.end() - 1, values.back()) != values.end() - 1) {
          list.at(i).fail(fmt::format("the value {} is a duplicate", values.back()));
        }
      }
      if (values.empty()) {
        list.fail("needs at least one value");
      }
      try {
        phase.scope.add(name);
      } catch (const Error& error) {
        list.fail(error.what());
      }
      phase.symbols.emplace_back(name, std::move(values));
    }
  }

  void read_entries(const JsonNode& list) {
    std::set<std::string> keys;
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      const JsonNode node = list.at(i);
      workload_.entries.push_back(read_entry(node));
      const WorkloadEntry& entry = workload_.entries.back();
      if (!keys.insert(fmt::format("{} {} {}", entry.phase, entry.kernel, entry.name)).second) {
        node.at("name").fail(fmt::format("the entry '{}' is a duplicate in its phase", entry.name));
      }
    }
  }

  WorkloadEntry read_entry(const JsonNode& node) const {
    node.only_keys({"kernel", "name", "phase", "dimensions", "types", "count", "alternative_of"});
    WorkloadEntry entry;
    entry.kernel = node.at("kernel").name();
    if (const auto why = why_no_kernel_name(entry.kernel)) {
      node.at("kernel").fail(fmt::format("'{}' {}", entry.kernel, *why));
    }
    entry.name = node.at("name").name();
    entry.phase = phase_index(node.at("phase"));
    entry.count = node.at("count").real();
    if (!(entry.count > 0) || !std::isfinite(entry.count)) {
      node.at("count").fail("must be above zero");
    }
    const JsonNode dimensions = node.at("dimensions");
    require_object(dimensions, "dimension and value");
    for (const auto& [name, ignored] : dimensions.value().items()) {
      entry.dimensions.emplace_back(name, dimensions.at(name).expression(workload_.phases[entry.phase].scope));
    }
    if (node.has("types")) {
      const JsonNode types = node.at("types");
      require_object(types, "type variable and element type");
      for (const auto& [name, ignored] : types.value().items()) {
        entry.types.emplace_back(name, read_element_type(types.at(name)));
      }
    }
    if (node.has("alternative_of")) {
      const JsonNode replaced = node.at("alternative_of");
      for (std::size_t i = 0; i < replaced.array_size(); ++i) {
        entry.alternative_of.push_back(replaced.at(i).name());
      }
      if (entry.alternative_of.empty()) {
        replaced.fail("needs the name of at least one entry");
      }
    }
    return entry;
  }

  [[nodiscard]] std::size_t phase_index(const JsonNode& node) const {
    const std::string name = node.name();
    const auto at = std::find_if(workload_.phases.begin(), workload_.phases.end(),
                                 [&](const WorkloadPhase& phase) { return phase.name == name; });
    if (at == workload_.phases.end()) {
      node.fail(fmt::format("unknown phase '{}'", name));
    }
    return static_cast<std::size_t>(at - workload_.phases.begin());
  }

  // After all entries are read, as an alternative may stand before what it replaces.
  void check_alternatives() const {
    for (std::size_t i = 0; i < workload_.entries.size(); ++i) {
      const WorkloadEntry& entry = workload_.entries[i];
      for (std::size_t j = 0; j < entry.alternative_of.size(); ++j) {
        if (std::none_of(workload_.entries.begin(), workload_.entries.end(), [&](const WorkloadEntry& other) {
              return other.phase == entry.phase && other.name == entry.alternative_of[j] &&
                     other.alternative_of.empty();
            })) {
          const JsonNode list = root_.at("entries").at(i).at("alternative_of");
          list.at(j).fail(
              fmt::format("the phase has no entry '{}' that is not an alternative itself", entry.alternative_of[j]));
        }
      }
    }
  }

  JsonNode root_;
  Workload workload_;
};

}  // namespace

Workload Workload::parse(std::string_view text, const std::string& name) {
  const nlohmann::json document = parse_json(text, name);
  return WorkloadReader(document, name).read();
}

Workload Workload::load(const std::filesystem::path& file) {
  Workload workload = parse(read_space_file(file), file.string());
  if (workload.name != file.stem().string()) {
    throw SpaceError(file.string(), "/name",
                     fmt::format("is '{}', but the file is named '{}'", workload.name, file.stem().string()));
  }
  return workload;
}

}  // namespace pascaline
