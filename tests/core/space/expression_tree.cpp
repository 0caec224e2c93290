#include "tests/core/space/expression_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

namespace pascaline::testing {
namespace {

__extension__ using Wide = __int128;

constexpr int kUnary = 11;
constexpr int kPrimary = 12;

const std::map<std::string, int>& binary_operators() {
  static const std::map<std::string, int> kOperators{{"*", 10}, {"/", 10}, {"%", 10}, {"+", 9}, {"-", 9},  {"<<", 8},
                                                     {">>", 8}, {"<", 7},  {"<=", 7}, {">", 7}, {">=", 7}, {"==", 6},
                                                     {"!=", 6}, {"&", 5},  {"^", 4},  {"|", 3}, {"&&", 2}, {"||", 1}};
  return kOperators;
}

constexpr std::array<const char*, 3> kUnaryOperators{"neg", "!", "~"};
constexpr std::array<const char*, 3> kUnaryFunctions{"abs", "is_pow2", "log2"};
constexpr std::array<const char*, 4> kBinaryFunctions{"min", "max", "ceil_div", "round_up"};

std::optional<std::int64_t> narrowed(Wide value) {
  if (value < std::numeric_limits<std::int64_t>::min() || value > std::numeric_limits<std::int64_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(value);
}

Wide ceil_quotient(Wide left, Wide right) {
  const Wide quotient = left / right;
  return left % right != 0 && (left < 0) == (right < 0) ? quotient + 1 : quotient;
}

std::int64_t random_literal(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0:
      return static_cast<std::int64_t>(random() >> 1);
    case 1:
      return std::int64_t{1} << (random() % 63);
    default:
      return static_cast<std::int64_t>(random() % 70);
  }
}

}  // namespace

ExpressionTree ExpressionTree::random(std::mt19937_64& random, std::span<const std::string> names, int depth) {
  ExpressionTree tree;
  const auto add = [&](int count) {
    for (int i = 0; i < count; ++i) {
      tree.children_.push_back(ExpressionTree::random(random, names, depth - 1));
    }
  };
  const std::size_t kind = depth == 0 ? random() % 2 : random() % 12;
  if (kind == 0) {
    tree.number_ = random_literal(random);
  } else if (kind == 1) {
    tree.op_ = "name";
    tree.number_ = static_cast<std::int64_t>(random() % names.size());
    tree.name_ = names[static_cast<std::size_t>(tree.number_)];
  } else if (kind == 2) {
    tree.op_ = kUnaryOperators[random() % kUnaryOperators.size()];
    add(1);
  } else if (kind == 3) {
    tree.op_ = kUnaryFunctions[random() % kUnaryFunctions.size()];
    add(1);
  } else if (kind == 4) {
    tree.op_ = kBinaryFunctions[random() % kBinaryFunctions.size()];
    add(2);
  } else if (kind == 5) {
    tree.op_ = "?";
    add(3);
  } else {
    tree.op_ =
        std::next(binary_operators().begin(), static_cast<std::ptrdiff_t>(random() % binary_operators().size()))->first;
    add(2);
    const bool orders = tree.precedence() == binary_operators().at("<");
    if (orders && tree.children_[0].compares() != tree.children_[1].compares()) {
      tree.op_ = "==";  // a comparison in a chain is refused
    }
  }
  return tree;
}

int ExpressionTree::precedence() const {
  if (op_ == "?") {
    return 0;
  }
  if (std::find(kUnaryOperators.begin(), kUnaryOperators.end(), op_) != kUnaryOperators.end()) {
    return kUnary;
  }
  const auto binary = binary_operators().find(op_);
  return binary != binary_operators().end() ? binary->second : kPrimary;
}

bool ExpressionTree::compares() const {
  return precedence() == binary_operators().at("==") || precedence() == binary_operators().at("<");
}

std::string ExpressionTree::operand(std::size_t index, int least, std::mt19937_64& random) const {
  const ExpressionTree& child = children_[index];
  const std::string text = child.text(random);
  return child.precedence() < least || random() % 16 == 0 ? "(" + text + ")" : text;
}

std::string ExpressionTree::text(std::mt19937_64& random) const {
  const char* space = random() % 2 == 0 ? " " : "";
  const int own = precedence();
  if (op_.empty()) {
    return random() % 4 == 0 ? fmt::format("0x{:x}", number_) : fmt::format("{}", number_);
  }
  if (op_ == "name") {
    return name_;
  }
  if (op_ == "?") {
    return operand(0, 1, random) + space + "?" + space + operand(1, 0, random) + space + ":" + space +
           operand(2, 0, random);
  }
  if (own == kUnary) {
    return (op_ == "neg" ? "-" : op_) + space + operand(0, kUnary, random);
  }
  if (own == kPrimary) {
    const std::string second = children_.size() > 1 ? std::string(",") + space + operand(1, 0, random) : "";
    return op_ + space + "(" + operand(0, 0, random) + second + ")";
  }
  return operand(0, compares() ? own + 1 : own, random) + space + op_ + space + operand(1, own + 1, random);
}

std::optional<std::int64_t> ExpressionTree::unary_value(std::int64_t operand) const {
  const Wide wide = operand;
  if (op_ == "neg") {
    return narrowed(-wide);
  }
  if (op_ == "abs") {
    return narrowed(wide < 0 ? -wide : wide);
  }
  if (op_ == "!" || op_ == "~") {
    return op_ == "!" ? (operand == 0 ? 1 : 0) : narrowed(-wide - 1);
  }
  int log = 0;
  while (operand > 0 && (Wide{1} << (log + 1)) <= wide) {
    ++log;
  }
  if (op_ == "is_pow2") {
    return operand > 0 && (Wide{1} << log) == wide ? 1 : 0;
  }
  return operand > 0 ? std::optional<std::int64_t>(log) : std::nullopt;
}

std::optional<std::int64_t> ExpressionTree::binary_value(std::int64_t left, std::int64_t right) const {
  const Wide a = left;
  const Wide b = right;
  const bool divides = op_ == "/" || op_ == "%" || op_ == "ceil_div" || op_ == "round_up";
  if (divides && (b == 0 || !narrowed(a / b))) {
    return std::nullopt;
  }
  if ((op_ == "<<" || op_ == ">>") && (b < 0 || b > 63 || (op_ == "<<" && a < 0))) {
    return std::nullopt;
  }
  if (op_ == "+") return narrowed(a + b);
  if (op_ == "-") return narrowed(a - b);
  if (op_ == "*") return narrowed(a * b);
  if (op_ == "/") return narrowed(a / b);
  if (op_ == "%") return narrowed(a % b);
  if (op_ == "ceil_div") return narrowed(ceil_quotient(a, b));
  if (op_ == "round_up") return narrowed(ceil_quotient(a, b) * b);
  if (op_ == "<<") return narrowed(a * (Wide{1} << right));
  if (op_ == ">>") return left >> right;
  if (op_ == "<") return a < b ? 1 : 0;
  if (op_ == "<=") return a <= b ? 1 : 0;
  if (op_ == ">") return a > b ? 1 : 0;
  if (op_ == ">=") return a >= b ? 1 : 0;
  if (op_ == "==") return a == b ? 1 : 0;
  if (op_ == "!=") return a != b ? 1 : 0;
  if (op_ == "&") return left & right;
  if (op_ == "^") return left ^ right;
  if (op_ == "|") return left | right;
  return narrowed(op_ == "min" ? std::min(a, b) : std::max(a, b));
}

std::optional<std::int64_t> ExpressionTree::value(std::span<const std::int64_t> slots) const {
  if (children_.empty()) {
    return op_.empty() ? number_ : slots[static_cast<std::size_t>(number_)];
  }
  const auto first = children_[0].value(slots);
  if (!first) {
    return std::nullopt;
  }
  if (op_ == "?") {
    return children_[*first != 0 ? 1 : 2].value(slots);
  }
  if (op_ == "&&" || op_ == "||") {
    if ((*first != 0) == (op_ == "||")) {
      return *first != 0 ? 1 : 0;
    }
    const auto second = children_[1].value(slots);
    return second ? std::optional<std::int64_t>(*second != 0 ? 1 : 0) : std::nullopt;
  }
  if (children_.size() == 1) {
    return unary_value(*first);
  }
  const auto second = children_[1].value(slots);
  return second ? binary_value(*first, *second) : std::nullopt;
}

}  // namespace pascaline::testing
