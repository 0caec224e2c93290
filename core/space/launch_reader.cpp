#include "core/space/launch_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "core/space/code_words.hpp"

namespace pascaline {
namespace {

template <typename Enum>
Enum read_choice(const JsonNode& node, std::initializer_list<std::pair<std::string_view, Enum>> choices) {
  const std::string word = node.name();
  std::string known;
  for (const auto& [name, value] : choices) {
    if (name == word) {
      return value;
    }
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  node.fail(fmt::format("unknown name '{}' (known here: {})", word, known));
}

void read_triple(const JsonNode& node, const Symbols& symbols, std::array<Expression, 3>& out) {
  if (node.array_size() == 0 || node.array_size() > 3) {
    node.fail("needs one to three expressions");
  }
  for (std::size_t i = 0; i < 3; ++i) {
    out[i] = i < node.array_size() ? node.at(i).expression(symbols) : Expression::constant(1);
  }
}

void read_type(const JsonNode& node, const Space& space, Argument& argument) {
  const std::string name = node.name();
  const bool variable =
      std::any_of(space.types.begin(), space.types.end(), [&](const auto& type) { return type.name == name; });
  if (variable) {
    argument.type_variable = name;
  } else {
    argument.type = read_element_type(node);
  }
}

// A number, or an expression in quotes.
void read_end(const JsonNode& node, const char* key, const Symbols& symbols, double& number,
              std::optional<Expression>& expression) {
  if (!node.has(key)) {
    return;
  }
  if (node.at(key).value().is_string()) {
    expression = node.at(key).expression(symbols);
  } else {
    number = node.at(key).real();
  }
}

void read_buffer(const JsonNode& node, const Symbols& symbols, Argument& argument) {
  if (node.has("value")) {
    node.fail("a buffer has 'extent', not 'value'");
  }
  argument.access = read_choice<Access>(
      node.at("access"),
      {{"in", Access::in}, {"out", Access::out}, {"inout", Access::inout}, {"scratch", Access::scratch}});
  if (node.has("fill")) {
    argument.fill = read_choice<Fill>(node.at("fill"), {{"none", Fill::none},
                                                        {"zero", Fill::zero},
                                                        {"uniform", Fill::uniform},
                                                        {"normal", Fill::normal},
                                                        {"ramp", Fill::ramp},
                                                        {"row_ramp", Fill::row_ramp},
                                                        {"constant", Fill::constant},
                                                        {"sorted", Fill::sorted},
                                                        {"permutation", Fill::permutation}});
  } else if (argument.access == Access::in || argument.access == Access::inout) {
    argument.fill = Fill::uniform;
  }
  argument.low = argument.fill == Fill::normal || argument.fill == Fill::permutation ? 0.0 : -1.0;
  if (node.has("columns")) {
    argument.columns = node.at("columns").expression(symbols);
  } else if (argument.fill == Fill::row_ramp) {
    node.at("fill").fail("a ramp for each row needs 'columns', the elements of a row");
  }
  read_end(node, "low", symbols, argument.low, argument.low_value);
  read_end(node, "high", symbols, argument.high, argument.high_value);
  const bool numbers = !argument.low_value && !argument.high_value;
  if ((argument.fill == Fill::uniform || argument.fill == Fill::sorted) && numbers &&
      !(argument.low <= argument.high)) {
    node.fail(fmt::format("fills from {} to {}, which is lower", argument.low, argument.high));
  }
  if (argument.fill == Fill::normal && numbers && !(argument.high >= 0)) {
    node.at("high").fail("a standard deviation must not be negative");
  }
}

// A scalar's number that is not an expression: a fraction, "inf", "-inf" or "nan".
std::optional<double> read_number(const JsonNode& value) {
  using Limits = std::numeric_limits<double>;
  if (value.value().is_number_float()) {
    return value.real();
  }
  const std::string text = value.value().is_string() ? value.text() : "";
  return text == "inf"    ? std::optional(Limits::infinity())
         : text == "-inf" ? std::optional(-Limits::infinity())
         : text == "nan"  ? std::optional(Limits::quiet_NaN())
                          : std::nullopt;
}

void require_real(const JsonNode& node, const std::vector<ElementType>& types, double number) {
  if (std::ranges::any_of(
          types, [](ElementType type) { return type != ElementType::float32 && type != ElementType::float64; })) {
    node.at("value").fail("is a fraction, which only scalars of float32 and float64 hold");
  }
  const bool is_too_large = std::isfinite(number) && std::isinf(static_cast<float>(number));
  if (is_too_large && std::ranges::find(types, ElementType::float32) != types.end()) {
    node.at("value").fail("is more than float32 holds");
  }
}

// A variable is named as C++ names it, from the outermost namespace.
std::string read_symbol(const JsonNode& node, Access access) {
  const std::string name = node.name();
  for (const std::string_view part : scopes_of(name)) {
    if (const auto why = why_no_code_name(part)) {
      node.fail(fmt::format("'{}' {}; give the name of a variable, such as taps or filters::taps", part, *why));
    }
  }
  if (access != Access::in) {
    node.fail("a variable of the file is only read: access 'in'");
  }
  return name;
}

void read_comparison(const JsonNode& node, Argument& argument) {
  for (const char* key : {"compare", "mask"}) {
    if (node.has(key) && !is_output(argument)) {
      node.at(key).fail("is for buffers with access 'out' or 'inout'");
    }
  }
  if (node.has("compare")) {
    argument.compare = read_choice<Comparison>(
        node.at("compare"),
        {{"each", Comparison::each}, {"any_order", Comparison::any_order}, {"sum", Comparison::sum}});
  }
  argument.mask = node.has("mask") ? node.at("mask").name() : "";
}

Argument read_argument(const JsonNode& node, const Space& space) {
  node.only_keys({"name", "buffer", "scalar", "access", "extent", "columns", "value", "fill", "low", "high", "symbol",
                  "argument", "compare", "mask"});
  Argument argument;
  argument.name = node.at("name").name();
  if (!is_identifier(argument.name)) {
    node.at("name").fail(fmt::format("'{}' is not an identifier", argument.name));
  }
  if (node.has("buffer") == node.has("scalar")) {
    node.fail("needs either 'buffer' or 'scalar', with the element type");
  }
  argument.kind = node.has("buffer") ? ArgumentKind::buffer : ArgumentKind::scalar;
  const bool is_buffer = argument.kind == ArgumentKind::buffer;
  read_type(node.at(is_buffer ? "buffer" : "scalar"), space, argument);
  argument.number = is_buffer ? std::nullopt : read_number(node.at("value"));
  if (argument.number) {
    require_real(node, space.types_of(argument), *argument.number);
  } else {
    argument.value = node.at(is_buffer ? "extent" : "value").expression(space.symbols);
  }
  const std::vector<ElementType> types = space.types_of(argument);
  const bool has_format = std::any_of(types.begin(), types.end(), is_matrix_format);
  if (has_format && (!is_buffer || !node.has("columns"))) {
    node.fail("a format of matrices is for buffers that say their 'columns'");
  }
  if (is_buffer) {
    read_buffer(node, space.symbols, argument);
    if (has_format && argument.access != Access::in) {
      node.at("access").fail("a format of matrices is only read: access 'in'");
    }
    if (node.has("symbol")) {
      argument.symbol = read_symbol(node.at("symbol"), argument.access);
      argument.passed = node.has("argument") && node.at("argument").boolean();
    } else if (node.has("argument")) {
      node.at("argument").fail("is for buffers with a 'symbol'");
    }
    read_comparison(node, argument);
    return argument;
  }
  for (const char* key :
       {"access", "extent", "columns", "fill", "low", "high", "symbol", "argument", "compare", "mask"}) {
    if (node.has(key)) {
      node.at(key).fail("a scalar has 'value' only");
    }
  }
  return argument;
}

// Place of the input buffer of that name.
std::size_t read_summand(const JsonNode& node, const Space& space) {
  const std::string name = node.name();
  for (std::size_t i = 0; i < space.arguments.size(); ++i) {
    if (space.arguments[i].name == name && is_input(space.arguments[i])) {
      return i;
    }
  }
  node.fail(fmt::format("there is no buffer '{}' with access 'in' or 'inout'", name));
}

bool is_floating(ElementType type) {
  return type == ElementType::float16 || type == ElementType::bfloat16 || type == ElementType::float32 ||
         type == ElementType::float64;
}

}  // namespace

ElementType read_element_type(const JsonNode& node) {
  const std::string name = node.name();
  const auto type = element_type_from(name);
  if (!type) {
    node.fail(fmt::format("unknown element type '{}'", name));
  }
  return *type;
}

Launch read_launch(const JsonNode& node, const Symbols& symbols) {
  node.only_keys({"function", "block", "grid", "shared_bytes"});
  Launch launch;
  launch.function = node.at("function").name();
  if (const auto why = why_no_function(launch.function)) {
    node.at("function").fail(fmt::format("'{}' {}", launch.function, *why));
  }
  read_triple(node.at("block"), symbols, launch.block);
  read_triple(node.at("grid"), symbols, launch.grid);
  if (node.has("shared_bytes")) {
    launch.shared_bytes = node.at("shared_bytes").expression(symbols);
  }
  return launch;
}

std::vector<Argument> read_arguments(const JsonNode& list, const Space& space) {
  std::vector<Argument> arguments;
  std::set<std::string> names;
  for (std::size_t i = 0; i < list.array_size(); ++i) {
    arguments.push_back(read_argument(list.at(i), space));
    if (!names.insert(arguments.back().name).second) {
      list.at(i).fail(fmt::format("the argument '{}' is a duplicate", arguments.back().name));
    }
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& mask = arguments[i].mask;
    const auto found = std::ranges::find(arguments, mask, &Argument::name);
    if (!mask.empty() && (found == arguments.end() || found->access != Access::in || found->columns ||
                          found->value.text() != arguments[i].value.text())) {
      list.at(i).at("mask").fail(
          fmt::format("it needs a buffer '{}' with access 'in' and the extent '{}'", mask, arguments[i].value.text()));
    }
  }
  if (std::none_of(arguments.begin(), arguments.end(), is_output)) {
    list.fail("needs at least one buffer with access 'out' or 'inout'");
  }
  return arguments;
}

Summation read_summation(const JsonNode& node, const Space& space) {
  node.only_keys({"terms", "of", "product_of", "positive", "type"});
  Summation sum;
  sum.terms = node.at("terms").expression(space.symbols);
  if (node.has("of")) {
    const JsonNode list = node.at("of");
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      sum.of.push_back(read_summand(list.at(i), space));
    }
    if (sum.of.empty()) {
      list.fail("needs the name of at least one argument");
    }
  }
  if (node.has("product_of")) {
    sum.product_of = node.at("product_of").expression(space.symbols);
    if (sum.of.empty()) {
      node.at("product_of").fail("can be used with 'of' only");
    }
  }
  sum.positive = node.has("positive") && node.at("positive").boolean();
  if (sum.positive && !sum.of.empty()) {
    node.at("positive").fail("cannot be used with 'of': where nothing cancels, the result itself is the measure");
  }
  if (node.has("type")) {
    sum.type = read_element_type(node.at("type"));
    if (!is_floating(*sum.type)) {
      node.at("type").fail(fmt::format("{} is not a floating-point type", name_of(*sum.type)));
    }
  }
  return sum;
}

}  // namespace pascaline
