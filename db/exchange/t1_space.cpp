#include "db/exchange/t1_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/problem.hpp"
#include "core/space/expression.hpp"
#include "db/exchange/python_condition.hpp"
#include "db/exchange/python_syntax.hpp"

namespace pascaline {
namespace {

using nlohmann::ordered_json;

struct T1Type {
  std::string_view name;
  ElementType element;
  int lanes;  // elements in one of the type
};

constexpr std::array<T1Type, 14> kT1Types{{{"float", ElementType::float32, 1},
                                           {"float2", ElementType::float32, 2},
                                           {"float4", ElementType::float32, 4},
                                           {"double", ElementType::float64, 1},
                                           {"double2", ElementType::float64, 2},
                                           {"double4", ElementType::float64, 4},
                                           {"half", ElementType::float16, 1},
                                           {"half2", ElementType::float16, 2},
                                           {"int32", ElementType::int32, 1},
                                           {"uint32", ElementType::uint32, 1},
                                           {"int64", ElementType::int64, 1},
                                           {"int8", ElementType::int8, 1},
                                           {"uint8", ElementType::uint8, 1},
                                           {"bool", ElementType::uint8, 1}}};

// Compared are results of two configurations of one kernel, which differ in the order of their sums.
double tolerance_of(ElementType type) {
  switch (type) {
    case ElementType::float64:
      return 1e-9;
    case ElementType::float32:
      return 1e-4;
    case ElementType::float16:
    case ElementType::bfloat16:
      return 1e-2;
    default:
      return 0;
  }
}

// The least and the most of a type's values.
std::pair<double, double> range_of(const T1Type& type) {
  constexpr double kMaxFloat = 3.4028234663852886e38;
  constexpr double kMaxDouble = 1.7976931348623157e308;
  if (type.name == "bool") {
    return {0, 1};
  }
  switch (type.element) {
    case ElementType::float64:
      return {-kMaxDouble, kMaxDouble};
    case ElementType::float16:
      return {-65504, 65504};
    case ElementType::int8:
      return {-128, 127};
    case ElementType::uint8:
      return {0, 255};
    case ElementType::int32:
      return {-2147483648.0, 2147483647.0};
    case ElementType::uint32:
      return {0, 4294967295.0};
    case ElementType::int64:
      return {-9223372036854775808.0, 9223372036854774784.0};
    default:
      return {-kMaxFloat, kMaxFloat};
  }
}

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class SpaceWriter {
 public:
  SpaceWriter(const T1Input& input, const std::string& kernel) : input_(input), kernel_(kernel) {
    for (const T1Parameter& parameter : input.parameters) {
      names_.push_back({parameter.name, parameter.values});
    }
    if (!input.problem_size.empty()) {
      names_.push_back({"ProblemSize", {}, input.problem_size});
    }
  }

  std::string write() {
    if (input_.language != "CUDA") {
      refuse("/KernelSpecification/Language",
             fmt::format("kernels in {} cannot be run here, only CUDA", input_.language));
    }
    add_parameters();
    write_launch();
    write_arguments();
    choose_default();
    check_extents();
    ordered_json parameters = ordered_json::array();
    for (std::size_t i = 0; i < input_.parameters.size(); ++i) {
      parameters.push_back(parameter_json(input_.parameters[i], chosen_[i]));
    }
    for (std::size_t i = 0; i < input_.compiler_options.size(); ++i) {
      refuse(
          fmt::format("/KernelSpecification/CompilerOptions/{}", i),
          fmt::format("the compiler option '{}' cannot be taken over; remove it, and give it to the space by hand if "
                      "the kernel needs it",
                      input_.compiler_options[i]));
    }
    const ordered_json document{
        {"schema", 1},
        {"kernel", kernel_},
        {"description", "Imported from a T1 input."},
        {"dimensions", ordered_json::array()},
        {"types", ordered_json::array()},
        {"parameters", parameters},
        {"constraints", constraints()},
        {"launch",
         {{"function", input_.kernel_name}, {"block", block_}, {"grid", grid_}, {"shared_bytes", input_.shared_bytes}}},
        {"arguments", arguments_},
        {"reference", {{"default", true}}},
        {"tolerance", tolerances_},
        {"work", {{"flops", 0}, {"bytes", bytes_}}}};
    return document.dump(1) + "\n";
  }

 private:
  [[noreturn]] void refuse(const std::string& pointer, const std::string& problem) const {
    throw SpaceError(input_.file, pointer, problem);
  }

  [[nodiscard]] std::string translated(const T1Text& python, bool round_up = false) const {
    try {
      return translate_number(python.text, names_, round_up);
    } catch (const PythonError& error) {
      refuse(python.pointer, fmt::format("in '{}', column {}: {}", python.text, error.column(), error.what()));
    }
  }

  void write_launch() {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const T1Text& local = input_.local_size[axis];
      block_.push_back(local.text.empty() ? "1" : translated(local));
    }
    for (std::size_t axis = 0; axis < 3; ++axis) {
      grid_.push_back(grid_of(axis));
    }
  }

  // With divisors, or a problem's size, the grid covers that size; else the global size is blocks for CUDA, threads for
  // the others.
  [[nodiscard]] std::string grid_of(std::size_t axis) const {
    const T1Text& global = input_.global_size[axis];
    std::string total = global.text.empty() ? "1" : translated(global, true);
    const bool sized = !input_.problem_size.empty();
    if (sized) {
      total = axis < input_.problem_size.size() ? std::to_string(input_.problem_size[axis]) : "1";
    }
    if (input_.has_grid_divisors) {
      std::string divisor;
      for (const T1Text& piece : input_.grid_divisors[axis]) {
        divisor += (divisor.empty() ? "" : " * ") + translated(piece);
      }
      return divisor.empty() ? total : fmt::format("ceil_div({}, {})", total, divisor);
    }
    const bool in_blocks = input_.global_size_type.empty() || input_.global_size_type == "CUDA";
    return !sized && in_blocks ? total : fmt::format("ceil_div({}, {})", total, block_[axis].get<std::string>());
  }

  void add_parameters() {
    for (std::size_t i = 0; i < input_.parameters.size(); ++i) {
      try {
        symbols_.add(input_.parameters[i].name);
      } catch (const Error& error) {
        refuse(fmt::format("/ConfigurationSpace/TuningParameters/{}/Name", i), error.what());
      }
    }
  }

  // Parameters are macros where the kernel is compiled, and arguments are named in it.
  void check_name(const T1Argument& argument) const {
    const std::string& name = argument.name;
    if (std::isdigit(static_cast<unsigned char>(name.front())) != 0 ||
        !std::all_of(name.begin(), name.end(), is_name_character)) {
      refuse(argument.pointer + "/Name", fmt::format("'{}' is no identifier", name));
    }
    if (symbols_.slot(name)) {
      refuse(argument.pointer + "/Name", fmt::format("'{}' is a parameter's name", name));
    }
  }

  // Extents are not too small or too large to be allocated by the default configuration.
  void check_extents() const {
    constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40U;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (!arguments_[i].contains("extent")) {
        continue;
      }
      const std::string pointer = input_.arguments[i].size.pointer;
      const auto text = arguments_[i].at("extent").get<std::string>();
      const auto extent = parse_expression(text, pointer).try_evaluate(slots_);
      const auto element = element_type_from(arguments_[i].at("buffer").get<std::string>());
      const auto most = kMaxBytes / static_cast<std::int64_t>(size_of(element.value()));
      if (!extent || *extent < 1 || *extent > most) {
        refuse(pointer, fmt::format("a vector of {} elements cannot be allocated; 1 to {} can",
                                    extent ? std::to_string(*extent) : "more than 2^63", most));
      }
    }
  }

  void write_arguments() {
    for (const T1Argument& argument : input_.arguments) {
      check_name(argument);
      const auto type = std::find_if(kT1Types.begin(), kT1Types.end(),
                                     [&](const T1Type& known) { return known.name == argument.type; });
      if (type == kT1Types.end()) {
        refuse(argument.pointer + "/Type", fmt::format("arguments of type '{}' cannot be taken over", argument.type));
      }
      if (argument.memory == "Scalar") {
        arguments_.push_back(scalar_json(argument, *type));
      } else if (argument.memory == "Vector") {
        arguments_.push_back(vector_json(argument, *type));
      } else {
        refuse(argument.pointer + "/MemoryType",
               fmt::format("{} memory cannot be taken over, only Scalar and Vector", argument.memory));
      }
    }
    if (tolerances_.empty()) {
      refuse("/KernelSpecification/Arguments", "no vector is written to, so there is no result to check");
    }
  }

  [[nodiscard]] ordered_json scalar_json(const T1Argument& argument, const T1Type& type) const {
    if (type.lanes > 1 || type.element == ElementType::float16) {
      refuse(argument.pointer + "/Type", fmt::format("scalars of type '{}' cannot be taken over", argument.type));
    }
    const double value = argument.fill_value.value_or(0);
    constexpr double kExact = 9007199254740992.0;  // 2^53
    if (!argument.fill_value || argument.fill == "Random" || value != std::floor(value) || std::abs(value) > kExact) {
      refuse(argument.pointer, "a scalar needs a whole number as its FillValue");
    }
    check_fill(argument, type);
    return {{"name", argument.name}, {"scalar", name_of(type.element)}, {"value", static_cast<std::int64_t>(value)}};
  }

  [[nodiscard]] ordered_json vector_json(const T1Argument& argument, const T1Type& type) {
    if (argument.size.text.empty()) {
      refuse(argument.pointer, "a vector needs its Size");
    }
    std::string extent = translated(argument.size);
    if (type.lanes > 1) {
      extent = fmt::format("{} * {}", extent, type.lanes);
    }
    const std::string access = argument.access == "ReadOnly" ? "in" : argument.access == "WriteOnly" ? "out" : "inout";
    ordered_json out{
        {"name", argument.name}, {"buffer", name_of(type.element)}, {"access", access}, {"extent", extent}};
    if (access != "in") {
      tolerances_[std::string(name_of(type.element))] = tolerance_of(type.element);
    }
    if (access != "out") {
      put_fill(argument, type, out);
    }
    bytes_ += fmt::format("{}({}) * {}", bytes_.empty() ? "" : " + ", extent, size_of(type.element));
    return out;
  }

  void check_fill(const T1Argument& argument, const T1Type& type) const {
    const auto [least, most] = range_of(type);
    if (argument.fill_value && !(*argument.fill_value >= least && *argument.fill_value <= most)) {
      refuse(argument.pointer + "/FillValue", fmt::format("{} does not fit the type '{}', which holds {} to {}",
                                                          *argument.fill_value, argument.type, least, most));
    }
  }

  void put_fill(const T1Argument& argument, const T1Type& type, ordered_json& out) const {
    check_fill(argument, type);
    const double value = argument.fill_value.value_or(argument.fill == "Constant" ? 0 : 1);
    if (argument.fill == "Constant") {
      out["fill"] = value == 0 ? "zero" : "ramp";
      if (value != 0) {
        out["low"] = value;
        out["high"] = value;
      }
    } else if (argument.fill == "Random" || argument.fill.empty()) {
      const bool whole = type.element != ElementType::float16 && tolerance_of(type.element) == 0;
      const bool narrow = type.element == ElementType::int8 || type.element == ElementType::uint8;
      const double most = argument.fill_value ? value : whole ? (narrow ? 100 : 1000) : 1;
      out["fill"] = "uniform";
      out["low"] = std::min(0.0, most);
      out["high"] = std::max(0.0, most);
    } else {
      refuse(argument.pointer + "/FillType",
             fmt::format("vectors filled by {} cannot be taken over, only Constant and Random", argument.fill));
    }
  }

  [[nodiscard]] ordered_json constraints() const {
    ordered_json out = ordered_json::array();
    for (const T1Condition& condition : input_.conditions) {
      out.push_back({{"require", condition.expression}, {"because", condition.python.text}});
    }
    return out;
  }

  static ordered_json value_json(const Value& value) {
    return std::visit([](const auto& native) { return ordered_json(native); }, value);
  }

  static ordered_json parameter_json(const T1Parameter& parameter, std::size_t chosen) {
    ordered_json values = ordered_json::array();
    for (const Value& value : parameter.values) {
      values.push_back(value_json(value));
    }
    return {{"name", parameter.name}, {"values", values}, {"default", value_json(parameter.values[chosen])}};
  }

  // The first configuration that meets the conditions, found parameter by parameter.
  void choose_default() {
    for (const T1Condition& condition : input_.conditions) {
      conditions_.push_back(parse_expression(condition.expression, condition.python.pointer));
    }
    const auto axis = [&](std::size_t i) { return block_[i].get<std::string>(); };
    conditions_.push_back(
        parse_expression(fmt::format("({0}) >= 1 && ({1}) >= 1 && ({2}) >= 1 && ({0}) * ({1}) * ({2}) <= 1024", axis(0),
                                     axis(1), axis(2)),
                         "/KernelSpecification/LocalSize"));
    chosen_.assign(input_.parameters.size(), 0);
    slots_.assign(input_.parameters.size(), 0);
    if (!choose_from(0)) {
      refuse("/ConfigurationSpace/Conditions",
             "no configuration meets the conditions with a block of 1 to 1024 threads");
    }
  }

  [[nodiscard]] Expression parse_expression(const std::string& text, const std::string& pointer) const {
    try {
      return Expression::parse(text, symbols_);
    } catch (const ExpressionError& error) {
      refuse(pointer, fmt::format("cannot be an expression of a search space: in '{}', column {}: {}", text,
                                  error.column(), error.what()));
    }
  }

  bool choose_from(std::size_t parameter) {
    if (parameter == slots_.size()) {
      return true;
    }
    const std::vector<Value>& values = input_.parameters[parameter].values;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (++tried_ > kMaxTried) {
        refuse("/ConfigurationSpace/Conditions", "no configuration that meets them was found in reasonable time");
      }
      const auto* integer = std::get_if<std::int64_t>(&values[i]);
      const auto* flag = std::get_if<bool>(&values[i]);
      slots_[parameter] = integer != nullptr ? *integer : flag != nullptr && *flag ? 1 : 0;
      chosen_[parameter] = i;
      if (holds_up_to(parameter) && choose_from(parameter + 1)) {
        return true;
      }
    }
    return false;
  }

  // Whether the conditions that this parameter decides, being the last that they name, are met.
  [[nodiscard]] bool holds_up_to(std::size_t parameter) const {
    return std::all_of(conditions_.begin(), conditions_.end(), [&](const Expression& condition) {
      const auto& used = condition.used_slots();
      const std::size_t last = used.empty() ? 0 : static_cast<std::size_t>(used.back());
      return last != parameter || condition.try_evaluate(slots_).value_or(0) != 0;
    });
  }

  static constexpr long kMaxTried = 5'000'000;

  const T1Input& input_;
  const std::string& kernel_;
  std::vector<PythonName> names_;
  Symbols symbols_;
  ordered_json block_ = ordered_json::array();
  ordered_json grid_ = ordered_json::array();
  ordered_json arguments_ = ordered_json::array();
  ordered_json tolerances_ = ordered_json::object();
  std::string bytes_;
  std::vector<Expression> conditions_;
  std::vector<std::size_t> chosen_;
  std::vector<std::int64_t> slots_;
  long tried_ = 0;
};

}  // namespace

std::string t1_space_json(const T1Input& input, const std::string& kernel) {
  return SpaceWriter(input, kernel).write();
}

std::string t1_kernel_source(const std::string& source, const T1Input& input) {
  const std::string& name = input.kernel_name;
  for (std::size_t at = source.find(name); at != std::string::npos; at = source.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at > 0 && is_name_character(source[at - 1])) || (end < source.size() && is_name_character(source[end]))) {
      continue;
    }
    const std::size_t global = source.rfind("__global__", at);
    const std::size_t next = source.find_first_not_of(" \t\r\n", end);
    if (global == std::string::npos || next == std::string::npos || source[next] != '(' ||
        source.substr(global, at - global).find_first_of(";{}") != std::string::npos) {
      continue;
    }
    // `extern "C"` stands on the declaration itself, or in front of a block around it.
    if (source.substr(0, global).find("extern \"C\"") != std::string::npos) {
      return source;
    }
    return source.substr(0, global) + "extern \"C\" " + source.substr(global);
  }
  throw SpaceError(input.file, "/KernelSpecification/KernelName",
                   fmt::format("the kernel's file has no __global__ function '{}'", name));
}

}  // namespace pascaline
