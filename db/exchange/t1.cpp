#include "db/exchange/t1.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "core/error.hpp"
#include "core/util/json_reader.hpp"
#include "db/exchange/python_condition.hpp"
#include "db/exchange/python_syntax.hpp"
#include "db/exchange/python_values.hpp"
#include "db/exchange/space_builder.hpp"
#include "db/exchange/unpack.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

// Runs `work` on a Python text and tells its complaints with the text's place.
template <typename Work>
auto with_place(const JsonNode& node, const std::string& python, const Work& work) {
  try {
    return work();
  } catch (const PythonError& error) {
    node.fail(fmt::format("in '{}', column {}: {}", one_line(python.substr(0, 200)), error.column(), error.what()));
  }
}

std::string one_of(const JsonNode& node, std::initializer_list<std::string_view> words) {
  std::string word = node.text();
  if (std::find(words.begin(), words.end(), word) == words.end()) {
    node.fail(fmt::format("'{}' is none of {}", one_line(word), fmt::join(words, ", ")));
  }
  return word;
}

// A parameter's value as its type has it.
Value typed(const JsonNode& node, const std::string& type, const Value& value) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  const auto* flag = std::get_if<bool>(&value);
  if (type == "string" && std::holds_alternative<std::string>(value)) {
    return value;
  }
  if (type == "bool" && (flag != nullptr || (integer != nullptr && (*integer == 0 || *integer == 1)))) {
    return flag != nullptr ? *flag : *integer == 1;
  }
  if (type == "float" && (integer != nullptr || real != nullptr)) {
    return integer != nullptr ? static_cast<double>(*integer) : *real;
  }
  if (type == "int" || type == "uint") {
    constexpr double kExact = 9007199254740992.0;  // 2^53
    const bool whole = real != nullptr && *real == std::floor(*real) && std::abs(*real) <= kExact;
    if (integer != nullptr || whole) {
      const std::int64_t number = integer != nullptr ? *integer : static_cast<std::int64_t>(*real);
      if (type == "int" || number >= 0) {
        return number;
      }
    }
  }
  node.fail(fmt::format("the value '{}' is no {}", one_line(to_text(value)), type));
}

class T1Reader {
 public:
  T1Reader(const json& document, const std::string& file) : root_(document, file) { input_.file = file; }

  T1Input read() {
    check_version(root_, "schema_version");
    if (root_.has("General")) {
      check_version(root_.at("General"), "FormatVersion");
    }
    const JsonNode space = root_.at("ConfigurationSpace");
    const JsonNode parameters = space.at("TuningParameters");
    for (std::size_t i = 0; i < parameters.array_size(); ++i) {
      read_parameter(parameters.at(i));
    }
    if (input_.parameters.empty()) {
      parameters.fail("there is no parameter");
    }
    if (space.has("Conditions")) {
      const JsonNode conditions = space.at("Conditions");
      for (std::size_t i = 0; i < conditions.array_size(); ++i) {
        read_condition(conditions.at(i));
      }
    }
    read_kernel(root_.at("KernelSpecification"));
    return std::move(input_);
  }

 private:
  // Written as 1, "1" or "1.0.0", or not at all.
  static void check_version(const JsonNode& parent, std::string_view key) {
    if (!parent.has(key) || parent.at(key).value().is_null()) {
      return;
    }
    const JsonNode node = parent.at(key);
    const std::string version = node.value().is_string() ? node.text() : node.value().dump();
    if (version != "1" && !version.starts_with("1.")) {
      node.fail(fmt::format("version {} of T1 is not known; known is 1.x", one_line(version.substr(0, 40))));
    }
  }

  void read_parameter(const JsonNode& node) {
    T1Parameter parameter;
    parameter.name = node.at("Name").name();
    if (find(parameter.name)) {
      node.at("Name").fail(fmt::format("the parameter '{}' stands twice", parameter.name));
    }
    parameter.type = one_of(node.at("Type"), {"int", "uint", "float", "bool", "string"});
    const JsonNode list = node.at("Values");
    const std::string python = list.text();
    ValueIndex values;
    for (const Value& value : with_place(list, python, [&] { return python_values(python); })) {
      values.add(typed(list, parameter.type, value));
    }
    if (values.values().empty()) {
      list.fail("a parameter needs a value");
    }
    constexpr std::size_t kMaxValues = 4096;  // of a parameter of a search space
    if (values.values().size() > kMaxValues) {
      list.fail(
          fmt::format("has {} values; a search space holds {} of a parameter", values.values().size(), kMaxValues));
    }
    parameter.values = values.values();
    names_.push_back({parameter.name, parameter.values});
    input_.parameters.push_back(std::move(parameter));
  }

  [[nodiscard]] bool find(const std::string& name) const {
    return std::any_of(input_.parameters.begin(), input_.parameters.end(),
                       [&](const T1Parameter& known) { return known.name == name; });
  }

  void read_condition(const JsonNode& node) {
    T1Condition condition;
    const JsonNode parameters = node.at("Parameters");
    for (std::size_t i = 0; i < parameters.array_size(); ++i) {
      condition.parameters.push_back(parameters.at(i).text());
      if (!find(condition.parameters.back())) {
        parameters.at(i).fail(fmt::format("there is no parameter '{}'", one_line(condition.parameters.back())));
      }
    }
    const JsonNode expression = node.at("Expression");
    condition.python = {expression.text(), expression.pointer()};
    condition.expression = with_place(expression, condition.python.text,
                                      [&] { return translate_condition(condition.python.text, names_); });
    input_.conditions.push_back(std::move(condition));
  }

  void read_kernel(const JsonNode& kernel) {
    input_.language = one_of(kernel.at("Language"), {"OpenCL", "CUDA", "Vulkan", "Hypertuner"});
    input_.kernel_name = kernel.at("KernelName").name();
    input_.kernel_file = kernel.at("KernelFile").name();
    read_problem_size(kernel);
    if (kernel.has("Device") && kernel.at("Device").has("Name")) {
      input_.device = kernel.at("Device").at("Name").text();
    }
    if (kernel.has("GlobalSizeType")) {
      input_.global_size_type = one_of(kernel.at("GlobalSizeType"), {"OpenCL", "CUDA", "Vulkan"});
    }
    read_size(kernel.at("GlobalSize"), input_.global_size);
    read_size(kernel.at("LocalSize"), input_.local_size);
    constexpr std::array<std::string_view, 3> kDivisors{"GridDivX", "GridDivY", "GridDivZ"};
    for (std::size_t i = 0; i < kDivisors.size(); ++i) {
      read_divisors(kernel, kDivisors[i], input_.grid_divisors[i]);
    }
    if (kernel.has("SharedMemory")) {
      input_.shared_bytes = kernel.at("SharedMemory").integer();
      if (input_.shared_bytes < 0) {
        kernel.at("SharedMemory").fail("must not be negative");
      }
    }
    if (kernel.has("CompilerOptions")) {
      const JsonNode options = kernel.at("CompilerOptions");
      for (std::size_t i = 0; i < options.array_size(); ++i) {
        input_.compiler_options.push_back(options.at(i).text());
      }
    }
    if (kernel.has("Arguments")) {
      const JsonNode arguments = kernel.at("Arguments");
      for (std::size_t i = 0; i < arguments.array_size(); ++i) {
        read_argument(arguments.at(i), i);
      }
    }
  }

  void read_problem_size(const JsonNode& kernel) {
    if (!kernel.has("ProblemSize")) {
      return;
    }
    const JsonNode size = kernel.at("ProblemSize");
    if (size.value().is_number()) {
      input_.problem_size = {size.integer()};
    } else {
      for (std::size_t i = 0; i < size.array_size(); ++i) {
        input_.problem_size.push_back(size.at(i).integer());
      }
    }
    if (input_.problem_size.empty() || input_.problem_size.size() > 3 ||
        std::any_of(input_.problem_size.begin(), input_.problem_size.end(), [](std::int64_t n) { return n < 1; })) {
      size.fail("expected one to three numbers of at least 1");
    }
  }

  // A number or a Python text.
  static T1Text python_of(const JsonNode& node) {
    return {node.value().is_number() ? std::to_string(node.integer()) : node.name(), node.pointer()};
  }

  static void read_size(const JsonNode& size, std::array<T1Text, 3>& out) {
    constexpr std::array<std::string_view, 3> kAxes{"X", "Y", "Z"};
    (void)size.at("X");
    for (std::size_t i = 0; i < kAxes.size(); ++i) {
      if (size.has(kAxes[i])) {
        out[i] = python_of(size.at(kAxes[i]));
      }
    }
  }

  void read_divisors(const JsonNode& kernel, std::string_view key, std::vector<T1Text>& out) {
    if (!kernel.has(key) || kernel.at(key).value().is_null()) {
      return;
    }
    input_.has_grid_divisors = true;
    const JsonNode node = kernel.at(key);
    if (!node.value().is_array()) {
      out.push_back(python_of(node));
      return;
    }
    for (std::size_t i = 0; i < node.array_size(); ++i) {
      out.push_back(python_of(node.at(i)));
    }
  }

  void read_argument(const JsonNode& node, std::size_t index) {
    T1Argument argument;
    argument.pointer = node.pointer();
    argument.name = node.has("Name") ? node.at("Name").name() : fmt::format("argument_{}", index);
    argument.type = node.at("Type").name();
    argument.memory = one_of(node.at("MemoryType"), {"Scalar", "Vector", "Local", "Symbol"});
    if (node.has("AccessType")) {
      argument.access = one_of(node.at("AccessType"), {"ReadOnly", "WriteOnly", "ReadWrite"});
    }
    if (node.has("FillType")) {
      argument.fill =
          one_of(node.at("FillType"), {"Constant", "Random", "Generator", "Script", "BinaryRaw", "BinaryHDF"});
    }
    if (node.has("FillValue")) {
      argument.fill_value = node.at("FillValue").real();
    }
    if (node.has("Size")) {
      argument.size = python_of(node.at("Size"));
    }
    input_.arguments.push_back(std::move(argument));
  }

  JsonNode root_;
  T1Input input_;
  std::vector<PythonName> names_;
};

}  // namespace

T1Input parse_t1(std::string_view text, const std::string& file) {
  const json document = parse_json(text, file);
  return T1Reader(document, file).read();
}

T1Input read_t1(const std::filesystem::path& file) { return parse_t1(read_plain_or_gzip(file), file.string()); }

}  // namespace pascaline
