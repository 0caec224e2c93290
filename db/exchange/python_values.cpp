#include "db/exchange/python_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "db/exchange/python_syntax.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kMaxListed = 65535;
constexpr long kMaxSteps = 500'000;

// A scalar or a list.
struct PythonValue {
  Value scalar;
  std::optional<std::vector<PythonValue>> list;
};

[[noreturn]] void fail_at(const PythonNode& node, const std::string& message) {
  throw PythonError(message, node.column);
}

// What Python's arithmetic takes: booleans are integers.
std::optional<std::int64_t> integer_in(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) {
    return *flag ? 1 : 0;
  }
  const auto* integer = std::get_if<std::int64_t>(&value);
  return integer != nullptr ? std::optional(*integer) : std::nullopt;
}

class ListEvaluator {
 public:
  PythonValue evaluate(const PythonNode& node) {
    step(node);
    switch (node.kind) {
      case PythonKind::integer:
        return {node.integer, {}};
      case PythonKind::real:
        return {node.real, {}};
      case PythonKind::text:
        return {node.text, {}};
      case PythonKind::boolean:
        return {node.integer != 0, {}};
      case PythonKind::name:
        return variable(node);
      case PythonKind::list:
        return elements(node);
      case PythonKind::unary:
        return unary(node);
      case PythonKind::binary:
        return binary(node);
      case PythonKind::comparison:
        return comparison(node);
      case PythonKind::conjunction:
      case PythonKind::disjunction:
        return joined(node);
      case PythonKind::conditional:
        return evaluate(node.children[truth(node.children[1]) ? 0 : 2]);
      case PythonKind::call:
        return call(node);
      case PythonKind::subscript:
        return subscript(node);
      case PythonKind::comprehension: {
        PythonValue out{{}, std::vector<PythonValue>()};
        comprehend(node, 1, *out.list);
        return out;
      }
      default:
        fail_at(node, "this cannot be a value");
    }
  }

 private:
  // Scalars that copying it copies.
  static long weight(const PythonValue& value) {
    long all = 1;
    for (std::size_t i = 0; value.list && i < value.list->size(); ++i) {
      all += weight((*value.list)[i]);
    }
    return all;
  }

  void step(const PythonNode& node, long by = 1) {
    steps_ += by;
    if (steps_ > kMaxSteps) {
      fail_at(node, fmt::format("takes more than {} steps to work out", kMaxSteps));
    }
  }

  void append(const PythonNode& node, std::vector<PythonValue>& list, PythonValue value) {
    step(node, weight(value));
    if (list.size() == kMaxListed) {
      fail_at(node, fmt::format("more than {} values", kMaxListed));
    }
    list.push_back(std::move(value));
  }

  PythonValue variable(const PythonNode& node) {
    const auto found = std::find_if(variables_.rbegin(), variables_.rend(),
                                    [&](const auto& known) { return known.first == node.text; });
    if (found == variables_.rend()) {
      fail_at(node, fmt::format("unknown name '{}'", node.text));
    }
    step(node, weight(found->second));
    return found->second;
  }

  PythonValue elements(const PythonNode& node) {
    PythonValue out{{}, std::vector<PythonValue>()};
    for (const PythonNode& child : node.children) {
      append(child, *out.list, evaluate(child));
    }
    return out;
  }

  std::vector<PythonValue> list_of(const PythonNode& node) {
    PythonValue value = evaluate(node);
    if (!value.list) {
      fail_at(node, "expected a list");
    }
    steps_ += static_cast<long>(value.list->size());
    return std::move(*value.list);
  }

  Value scalar_of(const PythonNode& node) {
    PythonValue value = evaluate(node);
    if (value.list) {
      fail_at(node, "a list cannot stand here");
    }
    return std::move(value.scalar);
  }

  static double real_in(const PythonNode& node, const Value& value) {
    if (const auto integer = integer_in(value)) {
      return static_cast<double>(*integer);
    }
    const auto* real = std::get_if<double>(&value);
    if (real == nullptr) {
      fail_at(node, "expected a number, found a text");
    }
    return *real;
  }

  bool truth(const PythonNode& node) { return is_true(evaluate(node)); }
  static bool is_true(const PythonValue& value) {
    if (value.list) {
      return !value.list->empty();
    }
    if (const auto* text = std::get_if<std::string>(&value.scalar)) {
      return !text->empty();
    }
    const auto integer = integer_in(value.scalar);
    return integer ? *integer != 0 : std::get<double>(value.scalar) != 0;
  }

  PythonValue joined(const PythonNode& node) {
    const bool is_or = node.kind == PythonKind::disjunction;
    PythonValue value;
    for (const PythonNode& child : node.children) {
      value = evaluate(child);
      if (is_true(value) == is_or) {
        break;
      }
    }
    return value;
  }

  PythonValue unary(const PythonNode& node) {
    if (node.text == "not") {
      return {!truth(node.children[0]), {}};
    }
    const Value value = scalar_of(node.children[0]);
    if (const auto integer = integer_in(value)) {
      std::int64_t out = *integer;
      if (node.text == "-" && __builtin_sub_overflow(std::int64_t{0}, *integer, &out)) {
        fail_at(node, "the number does not fit 64 bits");
      }
      return {out, {}};
    }
    const double real = real_in(node, value);
    return {node.text == "-" ? -real : real, {}};
  }

  PythonValue binary(const PythonNode& node) {
    PythonValue left = evaluate(node.children[0]);
    PythonValue right = evaluate(node.children[1]);
    if (left.list || right.list) {
      return list_arithmetic(node, std::move(left), std::move(right));
    }
    const auto a = integer_in(left.scalar);
    const auto b = integer_in(right.scalar);
    if (a && b && node.text != "/" && !(node.text == "**" && *b < 0)) {
      return {integer_arithmetic(node, *a, *b), {}};
    }
    return {real_arithmetic(node, real_in(node, left.scalar), real_in(node, right.scalar)), {}};
  }

  PythonValue list_arithmetic(const PythonNode& node, PythonValue left, PythonValue right) {
    if (node.text == "+" && left.list && right.list) {
      for (PythonValue& value : *right.list) {
        append(node, *left.list, std::move(value));
      }
      return left;
    }
    if (node.text == "*" && left.list.has_value() != right.list.has_value()) {
      const PythonValue& list = left.list ? left : right;
      const auto times = integer_in(left.list ? right.scalar : left.scalar);
      PythonValue out{{}, std::vector<PythonValue>()};
      for (std::int64_t i = 0; times && !list.list->empty() && i < *times; ++i) {
        for (const PythonValue& value : *list.list) {
          append(node, *out.list, value);
        }
      }
      if (times) {
        return out;
      }
    }
    fail_at(node, fmt::format("'{}' cannot be used with a list here", node.text));
  }

  // False if it does not fit; b is not negative.
  static bool power(std::int64_t a, std::int64_t b, std::int64_t& out) {
    if (a >= -1 && a <= 1) {
      out = b == 0 || a == 1 || (a == -1 && b % 2 == 0) ? 1 : a;
      return true;
    }
    out = 1;
    for (std::int64_t i = 0; i < b; ++i) {
      if (__builtin_mul_overflow(out, a, &out)) {
        return false;
      }
    }
    return true;
  }

  static std::int64_t integer_arithmetic(const PythonNode& node, std::int64_t a, std::int64_t b) {
    std::int64_t out = 0;
    bool overflow = false;
    if (node.text == "+") {
      overflow = __builtin_add_overflow(a, b, &out);
    } else if (node.text == "-") {
      overflow = __builtin_sub_overflow(a, b, &out);
    } else if (node.text == "*") {
      overflow = __builtin_mul_overflow(a, b, &out);
    } else if (node.text == "**") {
      overflow = !power(a, b, out);
    } else if (node.text == "//" || node.text == "%") {
      if (b == 0) {
        fail_at(node, "division by zero");
      }
      overflow = b == -1 && a == std::numeric_limits<std::int64_t>::min();
      if (!overflow) {
        const std::int64_t rest = a % b;
        const bool other_sign = rest != 0 && (rest < 0) != (b < 0);
        out = node.text == "%" ? rest + (other_sign ? b : 0) : a / b - (other_sign ? 1 : 0);
      }
    } else {
      out = node.text == "&" ? a & b : node.text == "|" ? a | b : a ^ b;
    }
    if (overflow) {
      fail_at(node, "the number does not fit 64 bits");
    }
    return out;
  }

  static double real_arithmetic(const PythonNode& node, double a, double b) {
    const bool divides = node.text == "/" || node.text == "//" || node.text == "%";
    if (divides && b == 0) {
      fail_at(node, "division by zero");
    }
    double out = 0;
    if (node.text == "+") {
      out = a + b;
    } else if (node.text == "-") {
      out = a - b;
    } else if (node.text == "*") {
      out = a * b;
    } else if (node.text == "/") {
      out = a / b;
    } else if (node.text == "**") {
      out = std::pow(a, b);
    } else if (divides) {
      const double rest = std::fmod(a, b);
      const double floored = rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
      out = node.text == "%" ? floored : std::round((a - floored) / b);
    } else {
      fail_at(node, fmt::format("'{}' needs integers", node.text));
    }
    if (!std::isfinite(out)) {
      fail_at(node, "the number is not finite");
    }
    return out;
  }

  // Below, equal or above, as -1, 0, 1; nothing for values of different kinds.
  static std::optional<int> order(const PythonNode& node, const PythonValue& a, const PythonValue& b) {
    const auto* left = std::get_if<std::string>(&a.scalar);
    const auto* right = std::get_if<std::string>(&b.scalar);
    if (a.list || b.list || (left != nullptr) != (right != nullptr)) {
      return std::nullopt;
    }
    if (left != nullptr) {
      return left->compare(*right) < 0 ? -1 : *left == *right ? 0 : 1;
    }
    const auto i = integer_in(a.scalar);
    const auto j = integer_in(b.scalar);
    if (i && j) {
      return *i < *j ? -1 : *i == *j ? 0 : 1;
    }
    const double x = real_in(node, a.scalar);
    const double y = real_in(node, b.scalar);
    return x < y ? -1 : x == y ? 0 : 1;
  }

  static bool holds(const PythonNode& node, const std::string& word, const PythonValue& a, const PythonValue& b) {
    if (word == "in" || word == "not in") {
      if (!b.list) {
        fail_at(node, "'in' needs a list");
      }
      const bool found = std::any_of(b.list->begin(), b.list->end(),
                                     [&](const PythonValue& value) { return order(node, a, value) == 0; });
      return found == (word == "in");
    }
    const auto compared = order(node, a, b);
    if (word == "==" || word == "!=") {
      return (compared == 0) == (word == "==");
    }
    if (!compared) {
      fail_at(node, "values of different kinds cannot be compared");
    }
    return (word.front() == '<' && *compared < 0) || (word.front() == '>' && *compared > 0) ||
           (word.size() == 2 && *compared == 0);
  }

  PythonValue comparison(const PythonNode& node) {
    PythonValue left = evaluate(node.children[0]);
    for (std::size_t i = 0; i < node.operators.size(); ++i) {
      PythonValue right = evaluate(node.children[i + 1]);
      steps_ += right.list ? static_cast<long>(right.list->size()) : 0;
      if (!holds(node, node.operators[i], left, right)) {
        return {false, {}};
      }
      left = std::move(right);
    }
    return {true, {}};
  }

  void comprehend(const PythonNode& node, std::size_t clause, std::vector<PythonValue>& out) {
    if (clause == node.children.size()) {
      append(node, out, evaluate(node.children[0]));
      return;
    }
    const PythonNode& here = node.children[clause];
    if (here.kind == PythonKind::if_clause) {
      if (truth(here.children[0])) {
        comprehend(node, clause + 1, out);
      }
      return;
    }
    for (PythonValue& value : list_of(here.children[0])) {
      variables_.emplace_back(here.text, std::move(value));
      comprehend(node, clause + 1, out);
      variables_.pop_back();
    }
  }

  std::int64_t whole(const PythonNode& node) {
    const auto integer = integer_in(scalar_of(node));
    if (!integer) {
      fail_at(node, "expected an integer");
    }
    return *integer;
  }

  PythonValue range(const PythonNode& node) {
    if (node.children.empty() || node.children.size() > 3) {
      fail_at(node, "range takes one to three integers");
    }
    std::int64_t at = node.children.size() > 1 ? whole(node.children[0]) : 0;
    const std::int64_t end = whole(node.children[node.children.size() > 1 ? 1 : 0]);
    const std::int64_t by = node.children.size() > 2 ? whole(node.children[2]) : 1;
    if (by == 0) {
      fail_at(node, "range needs a step that is not 0");
    }
    PythonValue out{{}, std::vector<PythonValue>()};
    while (by > 0 ? at < end : at > end) {
      append(node, *out.list, {at, {}});
      if (__builtin_add_overflow(at, by, &at)) {
        break;
      }
    }
    return out;
  }

  PythonValue subscript(const PythonNode& node) {
    std::vector<PythonValue> list = list_of(node.children[0]);
    std::int64_t index = whole(node.children[1]);
    index += index < 0 ? static_cast<std::int64_t>(list.size()) : 0;
    if (index < 0 || index >= static_cast<std::int64_t>(list.size())) {
      fail_at(node, "the index is outside of the list");
    }
    return std::move(list[static_cast<std::size_t>(index)]);
  }

  // min, max, sum: of their arguments or of one list.
  PythonValue fold(const PythonNode& node) {
    std::vector<PythonValue> values;
    if (node.children.size() == 1) {
      values = list_of(node.children[0]);
    } else {
      for (const PythonNode& child : node.children) {
        values.push_back({scalar_of(child), {}});
      }
    }
    if (node.text == "sum") {
      PythonNode add = node;
      add.text.assign(1, '+');
      add.children.clear();
      PythonValue total{std::int64_t{0}, {}};
      for (const PythonValue& value : values) {
        total = sum_of(add, total, value);
      }
      return total;
    }
    if (values.empty()) {
      fail_at(node, fmt::format("{} needs a value", node.text));
    }
    PythonValue best = values.front();
    for (const PythonValue& value : values) {
      if (holds(node, node.text == "min" ? "<" : ">", value, best)) {
        best = value;
      }
    }
    return best;
  }

  static PythonValue sum_of(const PythonNode& add, const PythonValue& a, const PythonValue& b) {
    const auto i = integer_in(a.scalar);
    const auto j = integer_in(b.scalar);
    if (b.list) {
      fail_at(add, "lists cannot be summed");
    }
    if (i && j) {
      return {integer_arithmetic(add, *i, *j), {}};
    }
    return {real_arithmetic(add, real_in(add, a.scalar), real_in(add, b.scalar)), {}};
  }

  PythonValue call(const PythonNode& node) {
    if (node.text == "range") {
      return range(node);
    }
    if (node.text == "min" || node.text == "max" || node.text == "sum") {
      return fold(node);
    }
    constexpr std::string_view kKnown = "list, tuple, sorted, len, min, max, sum, abs, int, float and range";
    const bool of_list = node.text == "list" || node.text == "tuple" || node.text == "sorted" || node.text == "len";
    if (!of_list && node.text != "abs" && node.text != "int" && node.text != "float") {
      fail_at(node, fmt::format("the function '{}' is not known; known are {}", node.text, kKnown));
    }
    if (node.children.size() != 1) {
      fail_at(node, fmt::format("{} takes one argument", node.text));
    }
    return of_list ? call_on_list(node) : call_on_number(node);
  }

  PythonValue call_on_list(const PythonNode& node) {
    std::vector<PythonValue> list = list_of(node.children[0]);
    if (node.text == "len") {
      return {static_cast<std::int64_t>(list.size()), {}};
    }
    if (node.text == "sorted") {
      for (const PythonValue& value : list) {
        (void)holds(node, "<", value, list.front());  // complains of what cannot be compared
      }
      std::stable_sort(list.begin(), list.end(),
                       [&](const PythonValue& a, const PythonValue& b) { return order(node, a, b) == -1; });
    }
    return {{}, std::move(list)};
  }

  PythonValue call_on_number(const PythonNode& node) {
    const Value value = scalar_of(node.children[0]);
    const auto integer = integer_in(value);
    const double real = real_in(node, value);
    if (node.text == "float") {
      return {real, {}};
    }
    if (node.text == "abs") {
      if (integer && *integer == std::numeric_limits<std::int64_t>::min()) {
        fail_at(node, "the number does not fit 64 bits");
      }
      return integer ? PythonValue{std::abs(*integer), {}} : PythonValue{std::abs(real), {}};
    }
    if (!integer && std::abs(real) >= 9.2e18) {
      fail_at(node, "the number does not fit 64 bits");
    }
    return {integer ? *integer : static_cast<std::int64_t>(real), {}};
  }

  std::vector<std::pair<std::string, PythonValue>> variables_;
  long steps_ = 0;
};

}  // namespace

std::vector<Value> python_values(std::string_view text) {
  const PythonNode node = parse_python(text);
  const PythonValue value = ListEvaluator().evaluate(node);
  if (!value.list) {
    fail_at(node, "expected a list of values");
  }
  std::vector<Value> out;
  for (const PythonValue& element : *value.list) {
    if (element.list) {
      fail_at(node, "a list cannot be a parameter's value");
    }
    out.push_back(element.scalar);
  }
  return out;
}

}  // namespace pascaline
