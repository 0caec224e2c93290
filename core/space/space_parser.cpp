#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/space/enumeration.hpp"
#include "core/space/launch_reader.hpp"
#include "core/space/portfolio_reader.hpp"
#include "core/space/settings_reader.hpp"
#include "core/space/space.hpp"
#include "core/util/hash.hpp"
#include "core/util/json_reader.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kSchema = 1;
constexpr std::size_t kMaxValues = 4096;

// Refuses, at its place, a text of which `why` says something.
void require(const JsonNode& place, std::string_view text, const std::optional<std::string>& why) {
  if (why) {
    place.fail(fmt::format("'{}' {}", text, *why));
  }
}

// A name that becomes a macro of the kernel.
std::string read_macro_name(const JsonNode& node) {
  std::string name = node.name();
  require(node, name, why_no_macro_name(name));
  return name;
}

/// Reads a space document part by part; every complaint names its place.
class SpaceReader {
 public:
  SpaceReader(const nlohmann::json& document, const std::string& file) : root_(document, file) { space_.file = file; }

  Space read() {
    root_.only_keys({"schema",     "kernel",      "description", "dimensions", "types",   "structs",
                     "parameters", "constraints", "definitions", "macros",     "options", "launch",
                     "arguments",  "reference",   "tolerance",   "work",       "model",   "defaults",
                     "portfolio",  "portfolios",  "include",     "sources"});
    if (root_.at("schema").integer() != kSchema) {
      root_.at("schema").fail(fmt::format("this program reads schema {}", kSchema));
    }
    space_.kernel = root_.at("kernel").name();
    require(root_.at("kernel"), space_.kernel, why_no_kernel_name(space_.kernel));
    space_.description = root_.has("description") ? root_.at("description").text() : "";
    space_.include = read_paths("include");
    space_.sources = read_paths("sources");
    read_parameters();
    read_dimensions();
    read_types();
    if (root_.has("structs")) {
      space_.structs = read_structs(root_.at("structs"), space_.types);
    }
    for (const auto& [name, member] : limit_members()) {
      space_.symbols.add("device_" + std::string(name));
    }
    read_defaults();
    read_named_expressions(root_, "definitions");
    read_macros();
    read_options();
    read_constraints();
    space_.arguments = read_arguments(root_.at("arguments"), space_);
    space_.launches = read_launches(root_.at("launch"), space_);
    read_reference();
    read_tolerance();
    const JsonNode work = root_.at("work");
    work.only_keys({"flops", "bytes", "arithmetic"});
    read_arithmetic(work);
    space_.flops = work.at("flops").expression(space_.symbols);
    space_.bytes = work.at("bytes").expression(space_.symbols);
    read_model();
    check_defaults();
    read_measured();
    read_portfolios(root_, space_, kMaxPortfolio);
    return std::move(space_);
  }

 private:
  // Runs `add`, which gives `name` a meaning, turning its complaint into one with a place.
  template <typename Add>
  static void name_symbol(const JsonNode& place, const std::string& name, Add add) {
    if (name.starts_with("device_")) {
      place.fail("names that begin with 'device_' are reserved for the device's limits");
    }
    require(place, name, why_cuda_has_name(name));
    try {
      add();
    } catch (const Error& error) {
      place.fail(error.what());
    }
  }

  static void refuse_data_name(const JsonNode& place, const std::string& name) {
    if (name == kDataName) {
      place.fail("the name DATA is reserved for the contents of buffers; choose another");
    }
  }

  // Folders or files, which lie where the space lies, so that a kernel can be moved with all it needs.
  [[nodiscard]] std::vector<std::string> read_paths(std::string_view key) const {
    std::vector<std::string> paths;
    for (std::size_t i = 0; root_.has(key) && i < root_.at(key).array_size(); ++i) {
      const JsonNode node = root_.at(key).at(i);
      paths.push_back(node.name());
      const bool ends_line = paths.back().find_first_of("\n\r\"\\") != std::string::npos;
      const std::filesystem::path path = std::filesystem::path(paths.back()).lexically_normal();
      if (path.is_absolute() || *path.begin() == ".." || paths.back().front() == '~' || ends_line) {
        node.fail(fmt::format("'{}' is not in the search space's folder or below it", paths.back()));
      }
    }
    return paths;
  }

  // It is worked out before anything but the dimensions before it is known.
  [[nodiscard]] Expression read_default_dimension(const JsonNode& node) const {
    Expression value = node.expression(space_.symbols);
    for (const int slot : value.used_slots()) {
      if (static_cast<std::size_t>(slot) < space_.parameters.size()) {
        node.fail("a dimension's default may name only dimensions before it");
      }
    }
    return value;
  }

  void read_dimensions() {
    const JsonNode list = root_.at("dimensions");
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      const JsonNode node = list.at(i);
      node.only_keys(
          {"name", "description", "fixed", "varies", "minimum", "maximum", "example", "default", "measured_at_most"});
      Dimension dimension;
      dimension.name = node.at("name").name();
      dimension.description = node.has("description") ? node.at("description").text() : "";
      dimension.fixed = node.has("fixed") && node.at("fixed").boolean();
      dimension.varies = node.has("varies") && node.at("varies").boolean();
      dimension.minimum = node.has("minimum") ? node.at("minimum").integer() : 1;
      dimension.example =
          node.has("example") ? node.at("example").integer() : std::max<std::int64_t>(1024, dimension.minimum);
      if (node.has("maximum")) {
        dimension.maximum = node.at("maximum").integer();
        if (dimension.maximum < dimension.minimum) {
          node.at("maximum").fail(fmt::format("is below the minimum {}", dimension.minimum));
        }
      }
      if (node.has("default")) {
        dimension.default_value = read_default_dimension(node.at("default"));
      }
      if (!node.has("example")) {
        dimension.example = std::min(dimension.example, dimension.maximum);
      }
      if (dimension.example < dimension.minimum || dimension.example > dimension.maximum) {
        node.at("example").fail(
            fmt::format("is not between the minimum {} and the maximum {}", dimension.minimum, dimension.maximum));
      }
      refuse_data_name(node.at("name"), dimension.name);
      name_symbol(node.at("name"), dimension.name, [&] { space_.symbols.add(dimension.name); });
      space_.dimensions.push_back(std::move(dimension));
    }
  }

  // A variable that takes the type of an earlier one must allow all the earlier one can have.
  [[nodiscard]] std::size_t read_like(const JsonNode& node, const TypeVariable& variable) const {
    const std::string name = node.name();
    for (std::size_t i = 0; i < space_.types.size(); ++i) {
      if (space_.types[i].name != name) {
        continue;
      }
      for (const ElementType type : space_.types[i].allowed) {
        if (std::find(variable.allowed.begin(), variable.allowed.end(), type) == variable.allowed.end()) {
          node.fail(fmt::format("'{}' may be {}, which '{}' may not", name, name_of(type), variable.name));
        }
      }
      return i;
    }
    node.fail(fmt::format("there is no type variable '{}' before this one", name));
  }

  // A type, or `packed` for all packed formats.
  static std::vector<ElementType> read_allowed(const JsonNode& node) {
    if (node.text() != "packed") {
      return {read_element_type(node)};
    }
    std::vector<ElementType> types;
    for (const FormatTraits& format : packed_formats()) {
      types.push_back(format.type);
    }
    return types;
  }

  void read_types() {
    const JsonNode list = root_.at("types");
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      const JsonNode node = list.at(i);
      node.only_keys({"name", "values", "like"});
      TypeVariable variable;
      variable.name = read_macro_name(node.at("name"));
      const JsonNode values = node.at("values");
      for (std::size_t j = 0; j < values.array_size(); ++j) {
        for (const ElementType type : read_allowed(values.at(j))) {
          if (std::find(variable.allowed.begin(), variable.allowed.end(), type) != variable.allowed.end()) {
            values.at(j).fail(fmt::format("the element type {} is a duplicate", name_of(type)));
          }
          variable.allowed.push_back(type);
        }
      }
      if (variable.allowed.empty()) {
        values.fail("needs at least one element type");
      }
      if (node.has("like")) {
        variable.like = read_like(node.at("like"), variable);
      }
      refuse_data_name(node.at("name"), variable.name);
      name_symbol(node.at("name"), variable.name, [&] {
        space_.symbols.forbid(variable.name, "it is a type; use sizeof(" + variable.name + ")");
        const bool sized = std::none_of(variable.allowed.begin(), variable.allowed.end(), is_packed_format);
        space_.symbols.add_size_of(variable.name, sized ? ""
                                                        : "among the types are packed formats; use matrix_bytes(" +
                                                              variable.name + ", rows, columns), or bitsof(" +
                                                              variable.name + ")");
        space_.symbols.add_layout_of(variable.name);
      });
      space_.types.push_back(std::move(variable));
    }
  }

  void read_parameters() {
    const JsonNode list = root_.at("parameters");
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      const JsonNode node = list.at(i);
      node.only_keys({"name", "description", "values", "default", "option", "omit", "when"});
      Parameter parameter;
      parameter.option = node.has("option") ? node.at("option").name() : "";
      parameter.name = parameter.option.empty() ? read_macro_name(node.at("name")) : node.at("name").name();
      parameter.description = node.has("description") ? node.at("description").text() : "";
      read_values(node, parameter);
      read_omit(node, parameter);
      require_harmless(node, parameter);
      name_parameter(node.at("name"), parameter);
      space_.parameters.push_back(std::move(parameter));
    }
  }

  static void read_values(const JsonNode& node, Parameter& parameter) {
    const JsonNode values = node.at("values");
    if (values.array_size() == 0 || values.array_size() > kMaxValues) {
      values.fail(fmt::format("needs 1 to {} values", kMaxValues));
    }
    for (std::size_t j = 0; j < values.array_size(); ++j) {
      Value value = read_value(values.at(j));
      if (!parameter.values.empty() && value.index() != parameter.values.front().index()) {
        values.at(j).fail("has another type than the values before it");
      }
      if (std::find(parameter.values.begin(), parameter.values.end(), value) != parameter.values.end()) {
        values.at(j).fail(fmt::format("the value {} is a duplicate", to_text(value)));
      }
      parameter.values.push_back(std::move(value));
    }
    parameter.default_index = read_value_index(node.at("default"), parameter);
  }

  // Of an architecture, what differs from the parameters' own defaults; or a list of such for some problems each.
  void read_defaults() {
    if (!root_.has("defaults")) {
      return;
    }
    const JsonNode list = root_.at("defaults");
    for (const std::string& architecture : list.keys()) {
      const JsonNode node = list.at(architecture);
      const bool any = architecture == "any";
      const std::int64_t capability =
          any ? ArchitectureDefaults::kAny : read_architecture(node, architecture).compute_capability;
      if (!any && !node.value().is_array()) {
        space_.defaults.push_back({capability, std::nullopt, read_default_settings(node)});
        continue;
      }
      for (std::size_t i = 0; i < node.array_size(); ++i) {
        const JsonNode entry = node.at(i);
        entry.only_keys({"if", "set"});
        if (!entry.has("if") && (any || i + 1 < node.array_size())) {
          entry.fail(any ? "has no 'if': for all problems of all devices change the parameters' own defaults"
                         : "has no 'if', so that what follows is never the default");
        }
        space_.defaults.push_back({capability, read_condition(entry), read_default_settings(entry.at("set"))});
      }
    }
  }

  [[nodiscard]] std::vector<std::uint16_t> read_default_settings(const JsonNode& node) const {
    return read_settings(node, space_.parameters, space_.default_indices({.compute_capability = 0}));
  }

  [[nodiscard]] std::optional<Expression> read_condition(const JsonNode& entry) const {
    if (!entry.has("if")) {
      return std::nullopt;
    }
    Expression condition = entry.at("if").expression(space_.symbols);
    const auto& used = condition.used_slots();
    if (!used.empty() && static_cast<std::size_t>(used.front()) < space_.parameters.size()) {
      entry.at("if").fail(
          "names a parameter, whose default it is to choose; dimensions, types and device limits are known");
    }
    return condition;
  }

  static void read_omit(const JsonNode& node, Parameter& parameter) {
    if (!node.has("omit")) {
      return;
    }
    const JsonNode omit = node.at("omit");
    if (parameter.option.empty()) {
      omit.fail("can be used with 'option' only");
    }
    parameter.omit = read_value(omit);
    if (std::find(parameter.values.begin(), parameter.values.end(), *parameter.omit) == parameter.values.end()) {
      omit.fail(fmt::format("{} is not among the values of '{}'", to_text(*parameter.omit), parameter.name));
    }
  }

  // What the values become is part of a compiler's command line.
  static void require_harmless(const JsonNode& node, const Parameter& parameter) {
    for (std::size_t i = 0; i < parameter.values.size(); ++i) {
      const Value& value = parameter.values[i];
      if (parameter.option.empty()) {
        require(node.at("values").at(i), to_text(value), why_no_macro_value(to_text(value)));
      } else if (parameter.omit != value) {
        const std::string option = parameter.option + to_text(value);
        require(node.at("option"), option, why_no_compiler_option(option));
      }
    }
  }

  // Text and real parameters hold a slot too, so that slots and parameters stay in step.
  void name_parameter(const JsonNode& place, const Parameter& parameter) {
    const Value& first = parameter.values.front();
    const bool integer = std::holds_alternative<std::int64_t>(first) || std::holds_alternative<bool>(first);
    name_symbol(place, parameter.name, [&] {
      if (integer) {
        space_.symbols.add(parameter.name);
      } else {
        space_.symbols.add_forbidden(parameter.name, "its values are not integers");
      }
    });
  }

  // A parameter that some problems have no use for has its default there.
  void read_conditions() {
    const JsonNode list = root_.at("parameters");
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      if (!list.at(i).has("when")) {
        continue;
      }
      const JsonNode when = list.at(i).at("when");
      const Parameter& parameter = space_.parameters[i];
      const std::string condition = when.expression(space_.symbols).text();
      const std::string standard = to_text(parameter.values[parameter.default_index]);
      try {
        space_.constraints.push_back(
            {Expression::parse(fmt::format("({}) || {} == {}", condition, parameter.name, standard), space_.symbols),
             fmt::format("{} has a meaning only where {}", parameter.name, condition)});
      } catch (const Error& error) {
        when.fail(error.what());
      }
    }
  }

  void read_constraints() {
    read_conditions();
    if (!root_.has("constraints")) {
      return;
    }
    const JsonNode list = root_.at("constraints");
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      const JsonNode node = list.at(i);
      node.only_keys({"require", "because"});
      space_.constraints.push_back({node.at("require").expression(space_.symbols), node.at("because").name()});
    }
  }

  // Names that expressions may use from here on.
  std::vector<DerivedMacro> read_named_expressions(const JsonNode& parent, const char* key) {
    std::vector<DerivedMacro> out;
    if (!parent.has(key)) {
      return out;
    }
    const JsonNode list = parent.at(key);
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      const JsonNode node = list.at(i);
      node.only_keys({"name", "value"});
      const std::string name = node.at("name").name();
      const Expression value = node.at("value").expression(space_.symbols);
      name_symbol(node.at("name"), name, [&] { space_.symbols.define(name, value); });
      out.push_back({name, value});
    }
    return out;
  }

  void read_macros() {
    space_.derived = read_named_expressions(root_, "macros");
    for (std::size_t i = 0; i < space_.derived.size(); ++i) {
      (void)read_macro_name(root_.at("macros").at(i).at("name"));
    }
  }

  void read_options() {
    for (std::size_t i = 0; root_.has("options") && i < root_.at("options").array_size(); ++i) {
      const JsonNode option = root_.at("options").at(i);
      require(option, option.text(), why_no_compiler_option(option.text()));
      space_.options.push_back(option.text());
    }
  }

  // Another value is run than the problem's, so that nothing but the sizes of what is read may depend on it.
  void require_only_in_inputs(const JsonNode& node, const std::string& name) const {
    const int slot = space_.symbols.slot(name).value();
    const auto refuse = [&](const Expression& expression, std::string_view where) {
      if (std::ranges::binary_search(expression.used_slots(), slot)) {
        node.fail(
            fmt::format("{} names '{}' ('{}'): what a kernel does may not depend on a dimension that is measured "
                        "with a smaller value",
                        where, name, expression.text()));
      }
    };
    const auto refuse_geometry = [&](const Launch& launch) {
      std::ranges::for_each(launch.block, [&](const Expression& size) { refuse(size, "the launch"); });
      std::ranges::for_each(launch.grid, [&](const Expression& size) { refuse(size, "the launch"); });
      refuse(launch.shared_bytes, "the launch");
    };
    for (const Constraint& constraint : space_.constraints) {
      refuse(constraint.require, "a constraint");
    }
    for (const DerivedMacro& macro : space_.derived) {
      refuse(macro.value, "a macro");
    }
    for (const ArchitectureDefaults& defaults : space_.defaults) {
      refuse(defaults.condition.value_or(Expression()), "a default's condition");
    }
    for (const Argument& argument : space_.arguments) {
      if (argument.kind == ArgumentKind::buffer && argument.access != Access::in) {
        refuse(argument.value, "an extent of what is written");
      }
    }
    std::ranges::for_each(space_.launches, refuse_geometry);
    refuse(space_.flops, "the work");
    refuse(space_.bytes, "the work");
  }

  void read_measured() {
    const JsonNode list = root_.at("dimensions");
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      if (!list.at(i).has("measured_at_most")) {
        continue;
      }
      const JsonNode node = list.at(i).at("measured_at_most");
      Expression most = node.expression(space_.symbols);
      if (!most.used_slots().empty() &&
          static_cast<std::size_t>(most.used_slots().front()) < space_.parameters.size()) {
        node.fail("names a parameter; dimensions, types and device limits are known");
      }
      require_only_in_inputs(node, space_.dimensions[i].name);
      space_.dimensions[i].measured_at_most = std::move(most);
    }
  }

  void read_arithmetic(const JsonNode& work) {
    if (!work.has("arithmetic")) {
      return;
    }
    space_.arithmetic = work.at("arithmetic").text();
    const auto is_it = [&](const TypeVariable& variable) { return variable.name == space_.arithmetic; };
    if (space_.arithmetic != "float32" && space_.arithmetic != "int8" && std::ranges::none_of(space_.types, is_it)) {
      work.at("arithmetic").fail("is float32, int8 or a type variable");
    }
  }

  void read_reference() {
    const JsonNode node = root_.at("reference");
    node.only_keys({"kernel", "workspace", "slack", "default"});
    if (node.has("default")) {
      space_.reference.by_default = node.at("default").boolean();
    }
    if (space_.reference.by_default) {
      node.only_keys({"default"});
      return;
    }
    if (!node.has("kernel")) {
      node.fail(
          "needs 'kernel' (a naive kernel in the same file) or 'default': true (what the kernel's default "
          "configuration gives)");
    }
    space_.reference.kernel = read_launch(node.at("kernel"), space_);
    for (std::size_t i = 0; i < space_.arguments.size(); ++i) {
      if (space_.arguments[i].passed && is_output(space_.arguments[i]) &&
          std::ranges::count(space_.reference.kernel->arguments, i) == 0) {
        node.at("kernel").at("arguments").fail(fmt::format("the output '{}' is missing", space_.arguments[i].name));
      }
    }
    if (node.has("workspace")) {
      Argument& workspace = space_.reference.workspace.emplace();
      workspace.name = "workspace";
      workspace.type = ElementType::float64;
      workspace.access = Access::scratch;
      workspace.value = node.at("workspace").expression(space_.symbols);
    }
    if (node.has("slack")) {
      const std::string name = node.at("slack").name();
      const bool known = std::any_of(space_.arguments.begin(), space_.arguments.end(), [&](const Argument& argument) {
        return argument.name == name && is_output(argument) && argument.compare == Comparison::each;
      });
      if (!known) {
        node.at("slack").fail(
            fmt::format("'{}' names no buffer with access 'out' or 'inout' that is compared element by element", name));
      }
      space_.reference.slack = name;
    }
  }

  void read_tolerance() {
    const JsonNode node = root_.at("tolerance");
    if (!node.value().is_object()) {
      node.fail("expected an object of element type and relative error");
    }
    for (const auto& [name, ignored] : node.value().items()) {
      const JsonNode entry = node.at(name);
      if (name == "factor") {
        space_.tolerance_factor = entry.expression(space_.symbols);
        continue;
      }
      if (name == "sum") {
        space_.summation = read_summation(entry, space_);
        continue;
      }
      const auto type = element_type_from(name);
      if (!type && name != "floor") {
        entry.fail(fmt::format("unknown element type '{}'", name));
      }
      if (!(entry.real() >= 0)) {
        entry.fail("must not be negative");
      }
      if (type) {
        space_.tolerances.emplace_back(*type, entry.real());
      } else {
        space_.error_floor = entry.real();
      }
    }
    for (const Argument& argument : space_.arguments) {
      if (is_output(argument)) {
        require_tolerances(node, argument);
      }
    }
  }

  void require_tolerances(const JsonNode& node, const Argument& output) const {
    for (const ElementType type : space_.types_of(output)) {
      if (std::none_of(space_.tolerances.begin(), space_.tolerances.end(),
                       [&](const auto& known) { return known.first == type; })) {
        node.fail(fmt::format("has no entry for {}, a type of the output '{}'", name_of(type), output.name));
      }
    }
  }

  void read_model() {
    if (!root_.has("model")) {
      return;
    }
    const JsonNode node = root_.at("model");
    node.only_keys({"definitions", "blocks", "imbalance", "flops", "instructions", "global_bytes", "shared_bytes",
                    "registers", "static_shared_bytes", "global_steps", "prefetched_steps", "shared_steps",
                    "barriers"});
    read_named_expressions(node, "definitions");
    PerformanceModel& model = space_.model.emplace();
    for (const auto& [key, member] : kModelMembers) {
      if (node.has(key)) {
        model.*member = node.at(key).expression(space_.symbols);
      }
    }
  }

  // Constraints over parameters alone must hold for every default, else no problem could fall back on it.
  void check_defaults() {
    check_default(space_.default_indices({.compute_capability = 0}),
                  "the default configuration breaks this constraint");
    for (const ArchitectureDefaults& own : space_.defaults) {
      check_default(own.indices, fmt::format("the default for {} breaks this constraint", own.name()));
    }
  }

  void check_default(const std::vector<std::uint16_t>& indices, const std::string& complaint) {
    if (const auto broken = broken_by_parameters(space_, indices)) {
      const Constraint& constraint = space_.constraints[*broken];
      const JsonNode place = root_.at("constraints").at(*broken);
      place.fail(fmt::format(
          "{} ('{}': {})", any_valid_by_parameters(space_) ? complaint : "the constraints leave no valid configuration",
          constraint.require.text(), constraint.reason));
    }
  }

  JsonNode root_;
  Space space_;
};

}  // namespace

Space Space::parse(std::string_view text, const std::string& name) {
  const nlohmann::json document = parse_json(text, name);
  Space space = SpaceReader(document, name).read();
  space.json = document.dump();
  space.hash = hash_hex(space.json);
  return space;
}

Space Space::load(const std::filesystem::path& file) {
  Space space = parse(read_space_file(file), file.string());
  if (space.kernel != file.stem().string()) {
    throw SpaceError(file.string(), "/kernel",
                     fmt::format("is '{}', but the file is named '{}'", space.kernel, file.stem().string()));
  }
  return space;
}

}  // namespace pascaline
