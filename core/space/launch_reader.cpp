#include "core/space/launch_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "core/elements.hpp"
#include "core/space/code_words.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kMaxMembers = 1024;  // of a structure

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

std::optional<CompositeType> composite_from(const std::string& name, const std::vector<CompositeType>& structs) {
  const auto own = std::ranges::find(structs, name, &CompositeType::name);
  return own == structs.end() ? CompositeType::vector(name) : std::optional(*own);
}

void read_type(const JsonNode& node, const Space& space, Argument& argument) {
  const std::string name = node.name();
  const bool variable =
      std::any_of(space.types.begin(), space.types.end(), [&](const auto& type) { return type.name == name; });
  argument.composite = composite_from(name, space.structs);
  if (variable) {
    argument.type_variable = name;
  } else if (argument.composite) {
    argument.type = argument.composite->members.front().type;
  } else {
    argument.type = read_element_type(node);
  }
}

// [name, type] or [name, type, number of elements].
void read_member(const JsonNode& node, const std::vector<CompositeType>& structs, CompositeType& to) {
  if (node.array_size() < 2 || node.array_size() > 3) {
    node.fail("expected [name, type] or, of an array, [name, type, elements]");
  }
  const std::string name = node.at(0).name();
  if (const auto why = why_no_code_name(name)) {
    node.at(0).fail(fmt::format("'{}' {}", name, *why));
  }
  const bool is_array = node.array_size() == 3;
  const std::int64_t count = is_array ? node.at(2).integer() : 1;
  if (count < 1 || count > kMaxMembers) {
    node.at(2).fail(fmt::format("is not a number from 1 to {}", kMaxMembers));
  }
  const auto composite = composite_from(node.at(1).name(), structs);
  const ElementType type = composite ? ElementType::float32 : read_element_type(node.at(1));
  if (is_matrix_format(type)) {
    node.at(1).fail(fmt::format("{} is a format of matrices, which no member has", name_of(type)));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string element = is_array ? fmt::format("{}[{}]", name, i) : name;
    if (composite) {
      to.add(element, *composite);
    } else {
      to.add(element, type);
    }
  }
  if (to.members.size() > static_cast<std::size_t>(kMaxMembers)) {
    node.fail(fmt::format("a structure may have {} numbers", kMaxMembers));
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

void read_fill(const JsonNode& node, const Symbols& symbols, Argument& argument) {
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
  if (argument.fill == Fill::row_ramp && !argument.columns) {
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

// The fill of each member, where the numbers are not to be filled as those of one buffer. An entry is for the member of
// that name and for all in it: "position" for "position.x".
void read_member_fills(const JsonNode& node, const Symbols& symbols, Argument& argument) {
  if (!node.has("members") && argument.composite->is_uniform()) {
    return;
  }
  const std::vector<std::string> named = node.has("members") ? node.at("members").keys() : std::vector<std::string>();
  std::set<std::string> unused(named.begin(), named.end());
  for (const CompositeType::Member& of : argument.composite->members) {
    Argument member = argument;
    member.composite.reset();
    member.members.clear();
    member.name = of.name;
    member.type = of.type;
    for (const std::string& name : named) {
      const bool is_in = of.name.starts_with(name) &&
                         (of.name.size() == name.size() || of.name[name.size()] == '.' || of.name[name.size()] == '[');
      if (is_in) {
        const JsonNode entry = node.at("members").at(name);
        entry.only_keys({"fill", "low", "high"});
        member.low_value.reset();
        member.high_value.reset();
        member.high = 1;
        read_fill(entry, symbols, member);
        unused.erase(name);
      }
    }
    argument.members.push_back(std::move(member));
  }
  if (!unused.empty()) {
    node.at("members").at(*unused.begin()).fail(fmt::format("{} has no such member", argument.composite->text()));
  }
}

void read_buffer(const JsonNode& node, const Symbols& symbols, Argument& argument) {
  if (node.has("value")) {
    node.fail("a buffer has 'extent', not 'value'");
  }
  argument.access = read_choice<Access>(
      node.at("access"),
      {{"in", Access::in}, {"out", Access::out}, {"inout", Access::inout}, {"scratch", Access::scratch}});
  if (node.has("columns")) {
    argument.columns = node.at("columns").expression(symbols);
  }
  read_fill(node, symbols, argument);
  if (argument.composite) {
    read_member_fills(node, symbols, argument);
  } else if (node.has("members")) {
    node.at("members").fail("is for buffers of vectors and structures");
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

bool is_floating(ElementType type) {
  return type == ElementType::float16 || type == ElementType::bfloat16 || type == ElementType::float32 ||
         type == ElementType::float64;
}

void require_real(const JsonNode& value, const std::vector<ElementType>& types, double number) {
  if (!std::ranges::all_of(types, is_floating)) {
    value.fail("is a fraction, which only scalars of floating-point types hold");
  }
  const auto narrow = static_cast<float>(number);
  for (const ElementType type : types) {
    const float held = type == ElementType::float16    ? float_from_half(half_from_float(narrow))
                       : type == ElementType::bfloat16 ? float_from_bfloat(bfloat_from_float(narrow))
                                                       : narrow;
    if (type != ElementType::float64 && std::isfinite(number) && std::isinf(held)) {
      value.fail(fmt::format("is more than {} holds", name_of(type)));
    }
  }
}

void read_value(const JsonNode& value, const Space& space, Argument& argument) {
  argument.number = read_number(value);
  if (argument.number) {
    require_real(value, space.types_of(argument), *argument.number);
  } else if (value.value().is_boolean()) {
    argument.value = Expression::constant(value.boolean() ? 1 : 0);
  } else {
    argument.value = value.expression(space.symbols);
  }
}

// A list with the value of each member.
void read_member_values(const JsonNode& value, const Space& space, Argument& argument) {
  const std::vector<CompositeType::Member>& members = argument.composite->members;
  if (!value.value().is_array() || value.array_size() != members.size()) {
    value.fail(fmt::format("expected a list of {} values, those of {}", members.size(), argument.composite->text()));
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    Argument& member = argument.members.emplace_back();
    member.name = members[i].name;
    member.kind = ArgumentKind::scalar;
    member.type = members[i].type;
    read_value(value.at(i), space, member);
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

constexpr bool is_integer_texel(ElementType type) {
  return type == ElementType::int8 || type == ElementType::uint8 || type == ElementType::int16 ||
         type == ElementType::uint16 || type == ElementType::int32 || type == ElementType::uint32;
}

void require_texels(const JsonNode& node, const Space& space, const Argument& argument) {
  if (argument.access != Access::in) {
    node.fail("a texture is only read: set 'access' to 'in'");
  }
  const std::size_t channels = argument.composite ? argument.composite->members.size() : 1;
  const bool fits = !argument.composite || (argument.composite->is_vector && argument.composite->is_uniform() &&
                                            (channels == 1 || channels == 2 || channels == 4));
  const std::vector<ElementType> types = argument.composite && fits
                                             ? std::vector<ElementType>{argument.composite->members.front().type}
                                             : space.types_of(argument);
  const bool readable = std::ranges::all_of(types, [](ElementType type) {
    return is_integer_texel(type) || type == ElementType::float16 || type == ElementType::float32;
  });
  if (!fits || !readable) {
    node.fail(
        "a texture cannot hold this type: use float32, float16, an integer of up to 32 bits, or a vector of 1, 2 or 4 "
        "of these");
  }
  const bool small =
      std::ranges::all_of(types, [](ElementType type) { return is_integer_texel(type) && size_of(type) <= 2; });
  if (argument.texture->unit_values && !small) {
    node.at("read").fail("'normalized' is for integers of 8 and 16 bits: leave 'read' out");
  }
  if (argument.texture->interpolates && !argument.texture->unit_values &&
      std::ranges::any_of(types, is_integer_texel)) {
    node.at("filter").fail(
        "'linear' is for floating-point numbers: use 'point', or \"read\": \"normalized\" for integers of 8 and 16 "
        "bits");
  }
}

void read_texture(const JsonNode& node, const Space& space, Argument& argument) {
  node.only_keys({"filter", "address", "coordinates", "read"});
  TextureUse& texture = argument.texture.emplace();
  for (const char* key : {"filter", "address", "coordinates"}) {
    if (node.has(key) && !argument.columns) {
      node.at(key).fail("is for tex2D: give the buffer 'columns', or leave this key out");
    }
  }
  const auto is = [&](const char* key, std::string_view usual, std::string_view other) {
    return node.has(key) && read_choice<bool>(node.at(key), {{usual, false}, {other, true}});
  };
  texture.interpolates = is("filter", "point", "linear");
  texture.zero_outside = is("address", "clamp", "border");
  texture.unit_coordinates = is("coordinates", "elements", "normalized");
  texture.unit_values = is("read", "elements", "normalized");
  require_texels(node, space, argument);
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
  node.only_keys({"name", "buffer", "scalar", "access", "extent", "columns", "value", "fill", "low", "high", "members",
                  "symbol", "argument", "texture", "compare", "mask"});
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
  if (is_buffer) {
    argument.value = node.at("extent").expression(space.symbols);
  } else if (argument.composite) {
    read_member_values(node.at("value"), space, argument);
  } else {
    read_value(node.at("value"), space, argument);
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
    if (node.has("texture")) {
      if (!argument.symbol.empty()) {
        node.at("texture").fail("a buffer cannot have both 'texture' and 'symbol': leave one out");
      }
      read_texture(node.at("texture"), space, argument);
    }
    read_comparison(node, argument);
    return argument;
  }
  for (const char* key : {"access", "extent", "columns", "fill", "low", "high", "members", "symbol", "argument",
                          "texture", "compare", "mask"}) {
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
      if (is_mixed(space.arguments[i])) {
        node.fail(fmt::format("'{}' has members, which no term is a product of", name));
      }
      return i;
    }
  }
  node.fail(fmt::format("there is no buffer '{}' with access 'in' or 'inout'", name));
}

// Index of an argument that a launch names.
std::size_t read_passed(const JsonNode& node, const Space& space) {
  const std::string name = node.name();
  const auto found = std::ranges::find(space.arguments, name, &Argument::name);
  if (found == space.arguments.end() || !found->passed) {
    node.fail(found == space.arguments.end()
                  ? fmt::format("no argument is called '{}'", name)
                  : fmt::format("'{}' is a variable of the kernel's file, which no function takes", name));
  }
  return static_cast<std::size_t>(found - space.arguments.begin());
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

std::vector<CompositeType> read_structs(const JsonNode& list, const std::vector<TypeVariable>& taken) {
  std::vector<CompositeType> structs;
  for (std::size_t i = 0; i < list.array_size(); ++i) {
    const JsonNode node = list.at(i);
    node.only_keys({"name", "members"});
    CompositeType type;
    type.name = node.at("name").name();
    if (const auto why = why_no_code_name(type.name)) {
      node.at("name").fail(fmt::format("'{}' {}", type.name, *why));
    }
    if (element_type_from(type.name) || composite_from(type.name, structs) ||
        std::ranges::find(taken, type.name, &TypeVariable::name) != taken.end()) {
      node.at("name").fail(fmt::format("there is a type '{}' already", type.name));
    }
    std::set<std::string> names;
    const JsonNode members = node.at("members");
    for (std::size_t j = 0; j < members.array_size(); ++j) {
      read_member(members.at(j), structs, type);
      if (!names.insert(members.at(j).at(0).name()).second) {
        members.at(j).at(0).fail(fmt::format("the member '{}' is a duplicate", members.at(j).at(0).name()));
      }
    }
    if (type.members.empty()) {
      members.fail("needs at least one member");
    }
    structs.push_back(std::move(type));
  }
  return structs;
}

Launch read_launch(const JsonNode& node, const Space& space) {
  node.only_keys({"function", "block", "grid", "shared_bytes", "arguments"});
  const Symbols& symbols = space.symbols;
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
  if (node.has("arguments")) {
    for (std::size_t i = 0; i < node.at("arguments").array_size(); ++i) {
      launch.arguments.push_back(read_passed(node.at("arguments").at(i), space));
    }
    return launch;
  }
  for (std::size_t i = 0; i < space.arguments.size(); ++i) {
    if (space.arguments[i].passed) {
      launch.arguments.push_back(i);
    }
  }
  return launch;
}

std::vector<Launch> read_launches(const JsonNode& node, const Space& space) {
  constexpr std::size_t kMaxLaunches = 16;
  std::vector<Launch> launches;
  if (!node.value().is_array()) {
    launches.push_back(read_launch(node, space));
  } else if (node.array_size() == 0 || node.array_size() > kMaxLaunches) {
    node.fail(fmt::format("a pipeline has 1 to {} launches", kMaxLaunches));
  } else {
    for (std::size_t i = 0; i < node.array_size(); ++i) {
      launches.push_back(read_launch(node.at(i), space));
    }
  }
  for (std::size_t i = 0; i < space.arguments.size(); ++i) {
    const auto takes = [i](const Launch& launch) { return std::ranges::count(launch.arguments, i) > 0; };
    if (space.arguments[i].passed && std::ranges::none_of(launches, takes)) {
      node.fail(fmt::format("no launch takes the argument '{}'", space.arguments[i].name));
    }
  }
  return launches;
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
    if (arguments[i].composite && (!mask.empty() || arguments[i].compare != Comparison::each)) {
      list.at(i).fail("vectors and structures have neither 'compare' nor 'mask'");
    }
    if (!mask.empty() &&
        (found == arguments.end() || found->kind != ArgumentKind::buffer || found->access != Access::in ||
         found->columns || found->composite || found->value.text() != arguments[i].value.text())) {
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
