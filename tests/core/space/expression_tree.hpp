#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace pascaline::testing {

/// A random expression as a tree, which writes itself with no more parentheses than C needs and computes its value
/// in 128 bits: what the parser and the evaluator are held against.
class ExpressionTree {
 public:
  /// `names` are those of the slots; `depth` bounds the tree.
  static ExpressionTree random(std::mt19937_64& random, std::span<const std::string> names, int depth);

  [[nodiscard]] std::string text(std::mt19937_64& random) const;
  /// Nothing where a value of 64 bits is undefined in C, or beyond them.
  [[nodiscard]] std::optional<std::int64_t> value(std::span<const std::int64_t> slots) const;

 private:
  int precedence() const;
  [[nodiscard]] bool compares() const;
  [[nodiscard]] std::string operand(std::size_t index, int least, std::mt19937_64& random) const;
  [[nodiscard]] std::optional<std::int64_t> binary_value(std::int64_t left, std::int64_t right) const;
  [[nodiscard]] std::optional<std::int64_t> unary_value(std::int64_t operand) const;

  std::string op_;  ///< empty: a literal; "name": a slot; else the operator or the function
  std::string name_;
  std::int64_t number_ = 0;  ///< literal, or slot
  std::vector<ExpressionTree> children_;
};

}  // namespace pascaline::testing
