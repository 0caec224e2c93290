#include "db/exchange/python_condition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

#include "db/exchange/integer_term.hpp"
#include "db/exchange/python_syntax.hpp"

namespace pascaline {
namespace {

// A fraction; its denominator is never negative, and 0 only where the numerator has no value either.
struct Fraction {
  IntegerTerm above;
  IntegerTerm below = integer_constant(1);
};

[[noreturn]] void refuse(const PythonNode& node, const std::string& message) {
  throw PythonError(message, node.column);
}

class Translator {
 public:
  explicit Translator(const std::vector<PythonName>& names) : names_(names) {}

  // An expression that is not 0 where the node is true.
  std::string truth(const PythonNode& node) {
    switch (node.kind) {
      case PythonKind::comparison:
        return chain(node);
      case PythonKind::conjunction:
        return joined(node, " && ");
      case PythonKind::disjunction:
        return joined(node, " || ");
      case PythonKind::unary:
        if (node.text == "not") {
          return checked(node, "!" + truth(node.children[0]));
        }
        break;
      default:
        break;
    }
    return number(node).above.text;
  }

  Fraction number(const PythonNode& node) {
    Fraction out = translate(node);
    checked(node, out.above.text);
    checked(node, out.below.text);
    return out;
  }

 private:
  // Long pieces are refused before pieces made of them grow without bound.
  static std::string checked(const PythonNode& node, std::string text) {
    constexpr std::size_t kMaxText = 4096;
    if (text.size() > kMaxText) {
      refuse(node, fmt::format("the expression becomes longer than {} characters", kMaxText));
    }
    return text;
  }

  Fraction translate(const PythonNode& node) {
    switch (node.kind) {
      case PythonKind::integer:
      case PythonKind::boolean:
        return {integer_constant(node.integer)};
      case PythonKind::real:
        return whole_real(node);
      case PythonKind::text:
        refuse(node, "text cannot be used in conditions");
      case PythonKind::name:
        return name(node);
      case PythonKind::subscript:
        return element(node);
      case PythonKind::unary:
        return unary(node);
      case PythonKind::binary:
        return binary(node);
      case PythonKind::comparison:
        return {integer_truth(truth(node))};
      case PythonKind::conjunction:
      case PythonKind::disjunction:
        return operand_joined(node);
      case PythonKind::conditional:
        return pick(truth(node.children[1]), number(node.children[0]), number(node.children[2]));
      case PythonKind::call:
        return call(node);
      case PythonKind::list:
        refuse(node, "a list can only stand behind 'in'");
      default:
        refuse(node, "comprehensions cannot be used in conditions");
    }
  }

  static Fraction whole_real(const PythonNode& node) {
    constexpr double kExact = 9007199254740992.0;  // 2^53
    if (node.real != std::floor(node.real) || std::abs(node.real) > kExact) {
      refuse(node, "a real that is not whole cannot be used in conditions; write it as a fraction, as in 1 / 2");
    }
    return {integer_constant(static_cast<std::int64_t>(node.real))};
  }

  const PythonName& known(const PythonNode& node) const {
    const auto found =
        std::find_if(names_.begin(), names_.end(), [&](const PythonName& entry) { return entry.name == node.text; });
    if (found == names_.end()) {
      refuse(node, fmt::format("unknown name '{}'", node.text));
    }
    return *found;
  }

  [[nodiscard]] Fraction name(const PythonNode& node) const {
    const PythonName& entry = known(node);
    if (!entry.elements.empty()) {
      if (entry.elements.size() > 1) {
        refuse(node, fmt::format("'{}' is a list; give an index, as in {}[0]", node.text, node.text));
      }
      return {integer_constant(entry.elements[0])};
    }
    if (entry.values.empty()) {
      refuse(node, fmt::format("'{}' has no values", entry.name));
    }
    IntegerTerm term{entry.name, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), {}};
    for (const Value& value : entry.values) {
      const auto* integer = std::get_if<std::int64_t>(&value);
      const auto* flag = std::get_if<bool>(&value);
      if (integer == nullptr && flag == nullptr) {
        refuse(node, fmt::format("'{}' is {}, which cannot be used in conditions", entry.name,
                                 std::holds_alternative<double>(value) ? "a real" : "text"));
      }
      const double bound = integer != nullptr ? static_cast<double>(*integer) : static_cast<double>(*flag ? 1 : 0);
      term.low = std::min(term.low, bound);
      term.high = std::max(term.high, bound);
    }
    return {term};
  }

  Fraction element(const PythonNode& node) {
    const PythonNode& list = node.children[0];
    if (list.kind != PythonKind::name) {
      refuse(node, "only names can have an index in conditions");
    }
    const PythonName& entry = known(list);
    const Fraction index = number(node.children[1]);
    if (!index.above.constant || !index.below.is(1) || *index.above.constant < 0 ||
        *index.above.constant >= static_cast<std::int64_t>(entry.elements.size())) {
      refuse(node, fmt::format("'{}' has no element with this index", list.text));
    }
    return {integer_constant(entry.elements[static_cast<std::size_t>(*index.above.constant)])};
  }

  // Below, equal, above: by cross multiplication, denominators being positive.
  static std::string compare(const Fraction& a, const std::string& word, const Fraction& b) {
    return fmt::format("({} {} {})", multiply(a.above, b.below).text, word, multiply(b.above, a.below).text);
  }

  // Each operand is translated once, although those in the middle are compared twice.
  std::string chain(const PythonNode& node) {
    std::string out;
    Fraction left = number(node.children[0]);
    for (std::size_t i = 0; i < node.operators.size(); ++i) {
      const std::string& word = node.operators[i];
      const PythonNode& right = node.children[i + 1];
      const bool within = word == "in" || word == "not in";
      if (within && i + 1 < node.operators.size()) {
        refuse(right, "a list cannot be compared");
      }
      out += out.empty() ? "" : " && ";
      if (within) {
        out += membership(left, right, word == "in");
      } else {
        Fraction next = number(right);
        out += compare(left, word, next);
        left = std::move(next);
      }
      checked(node, out);
    }
    return node.operators.size() > 1 ? "(" + out + ")" : out;
  }

  std::string membership(const Fraction& left, const PythonNode& list, bool wanted) {
    if (list.kind != PythonKind::list) {
      refuse(list, "'in' needs a list or a tuple that is written out");
    }
    std::string out;
    for (const PythonNode& child : list.children) {
      out += (out.empty() ? "" : " || ") + compare(left, "==", number(child));
      checked(list, out);
    }
    if (out.empty()) {
      return wanted ? "0" : "1";
    }
    return wanted ? "(" + out + ")" : "!(" + out + ")";
  }

  std::string joined(const PythonNode& node, const char* between) {
    std::string out;
    for (const PythonNode& child : node.children) {
      out += (out.empty() ? "" : between) + truth(child);
      checked(node, out);
    }
    return "(" + out + ")";
  }

  // What `a and b` is as a number: a where it decides, else b.
  Fraction operand_joined(const PythonNode& node) {
    Fraction out = number(node.children.back());
    for (std::size_t i = node.children.size() - 1; i-- > 0;) {
      const Fraction left = number(node.children[i]);
      const std::string condition = left.above.text;
      out = node.kind == PythonKind::disjunction ? pick(condition, left, out) : pick(condition, out, left);
      checked(node, out.above.text);
    }
    return out;
  }

  static Fraction pick(const std::string& condition, const Fraction& a, const Fraction& b) {
    const IntegerTerm below =
        a.below.is(1) && b.below.is(1) ? integer_constant(1) : choose(condition, a.below, b.below);
    return {choose(condition, a.above, b.above), below};
  }

  Fraction unary(const PythonNode& node) {
    if (node.text == "not") {
      return {integer_truth(truth(node))};
    }
    const Fraction value = number(node.children[0]);
    return node.text == "-" ? Fraction{negate(value.above), value.below} : value;
  }

  Fraction binary(const PythonNode& node) {
    if (node.text == "**") {
      return power(node);
    }
    const Fraction a = number(node.children[0]);
    const Fraction b = number(node.children[1]);
    if (node.text == "*") {
      return {multiply(a.above, b.above), multiply(a.below, b.below)};
    }
    if (node.text == "/") {
      return divide(a, b);
    }
    const IntegerTerm left = multiply(a.above, b.below);
    const IntegerTerm right = multiply(b.above, a.below);
    if (node.text == "//") {
      return {floor_divide(left, right)};
    }
    const IntegerTerm below = multiply(a.below, b.below);
    if (node.text == "%") {
      return {floor_modulo(left, right), below};
    }
    if (node.text == "+" || node.text == "-") {
      return {node.text == "+" ? add(left, right) : subtract(left, right), below};
    }
    if (!below.is(1)) {
      refuse(node, fmt::format("'{}' needs integers", node.text));
    }
    const double infinity = std::numeric_limits<double>::infinity();
    return {{fmt::format("({} {} {})", left.text, node.text, right.text), -infinity, infinity, {}}};
  }

  // The divisor's sign goes to the numerator. Where it may be 0, a remainder of it takes care that there is no value.
  static Fraction divide(const Fraction& a, const Fraction& b) {
    IntegerTerm above = multiply(a.above, b.below);
    if (b.above.high < 0) {
      above = negate(above);
    } else if (b.above.low < 0) {
      above = choose(b.above.text + " < 0", negate(above), above);
    }
    if (b.above.can_be_zero()) {
      above.text = fmt::format("({} + 0 * (1 % {}))", above.text, b.above.text);
      above.constant.reset();
    }
    return {above, multiply(a.below, absolute(b.above))};
  }

  Fraction power(const PythonNode& node) {
    const Fraction base = number(node.children[0]);
    const Fraction exponent = number(node.children[1]);
    constexpr std::int64_t kMaxExponent = 62;
    if (exponent.below.is(1) && exponent.above.constant && std::abs(*exponent.above.constant) <= kMaxExponent) {
      Fraction out{integer_constant(1)};
      for (std::int64_t i = 0; i < std::abs(*exponent.above.constant); ++i) {
        out = {multiply(out.above, base.above), multiply(out.below, base.below)};
        checked(node, out.above.text);
      }
      return *exponent.above.constant < 0 ? divide({integer_constant(1)}, out) : out;
    }
    if (base.above.is(2) && base.below.is(1) && exponent.below.is(1) && exponent.above.low >= 0 &&
        exponent.above.high <= static_cast<double>(kMaxExponent)) {
      return {{fmt::format("(1 << {})", exponent.above.text), 1, std::exp2(exponent.above.high), {}}};
    }
    refuse(node,
           "a power needs an exponent that is a constant from -62 to 62, or the base 2 and an exponent from 0 to 62");
  }

  Fraction call(const PythonNode& node) {
    const bool least = node.text == "min";
    if (!least && node.text != "max" && node.text != "abs") {
      refuse(node, fmt::format("the function '{}' cannot be used in conditions; abs, min and max can", node.text));
    }
    if (node.text == "abs") {
      if (node.children.size() != 1) {
        refuse(node, "abs takes one number");
      }
      const Fraction value = number(node.children[0]);
      return {absolute(value.above), value.below};
    }
    if (node.children.size() == 1 && node.children[0].kind == PythonKind::name) {
      const IntegerTerm all = name(node.children[0]).above;  // of all values that it has
      const IntegerTerm bound = integer_constant(static_cast<std::int64_t>(least ? all.low : all.high));
      return {bound};
    }
    const std::vector<PythonNode>& values = node.children.size() == 1 && node.children[0].kind == PythonKind::list
                                                ? node.children[0].children
                                                : node.children;
    if (values.empty() || (values.size() == 1 && &values == &node.children)) {
      refuse(node, fmt::format("{} takes several numbers, or a list of them", node.text));
    }
    Fraction out = number(values[0]);
    for (std::size_t i = 1; i < values.size(); ++i) {
      const Fraction other = number(values[i]);
      out = lesser_or_greater(least, out, other);
      checked(node, out.above.text);
    }
    return out;
  }

  static Fraction lesser_or_greater(bool least, const Fraction& a, const Fraction& b) {
    if (!a.below.is(1) || !b.below.is(1)) {
      return pick(compare(b, least ? "<" : ">", a), b, a);
    }
    const double low = least ? std::min(a.above.low, b.above.low) : std::max(a.above.low, b.above.low);
    const double high = least ? std::min(a.above.high, b.above.high) : std::max(a.above.high, b.above.high);
    return {{fmt::format("{}({}, {})", least ? "min" : "max", a.above.text, b.above.text), low, high, {}}};
  }

  const std::vector<PythonName>& names_;
};

}  // namespace

std::string translate_condition(std::string_view python, const std::vector<PythonName>& names) {
  return Translator(names).truth(parse_python(python));
}

std::string translate_number(std::string_view python, const std::vector<PythonName>& names, bool round_up) {
  const PythonNode node = parse_python(python);
  const Fraction value = Translator(names).number(node);
  if (value.below.is(1)) {
    return value.above.text;
  }
  if (value.above.constant && value.below.constant && *value.above.constant % *value.below.constant == 0) {
    return integer_constant(*value.above.constant / *value.below.constant).text;
  }
  if (!round_up) {
    refuse(node, "this can be a fraction, and a whole number is needed; divide with //");
  }
  return negate(floor_divide(negate(value.above), value.below)).text;
}

}  // namespace pascaline
