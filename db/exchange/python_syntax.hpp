#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pascaline {

/// A text in Python's syntax is wrong or cannot be used; `column` is 1-based.
class PythonError : public std::runtime_error {
 public:
  PythonError(const std::string& message, int column) : std::runtime_error(message), column_(column) {}
  [[nodiscard]] int column() const noexcept { return column_; }

 private:
  int column_;
};

enum class PythonKind : std::uint8_t {
  integer,
  real,
  text,
  boolean,        ///< `integer` is 0 or 1
  name,           ///< `text`
  list,           ///< a list or a tuple; `children` are its elements
  unary,          ///< `text` is -, + or not
  binary,         ///< `text` is an arithmetic or bitwise operator
  comparison,     ///< a chain: `operators` stand between the `children`
  conjunction,    ///< a and b and …
  disjunction,    ///< a or b or …
  conditional,    ///< children: value, condition, other value
  call,           ///< `text` of the function, `children` its arguments
  subscript,      ///< children: what is indexed, the index
  comprehension,  ///< children: the element, then its clauses
  for_clause,     ///< `text` the variable, child: what it runs over
  if_clause,      ///< child: the condition
};

/// An expression of Python as a tree.
struct PythonNode {
  PythonKind kind = PythonKind::integer;
  int column = 1;
  std::string text;
  std::int64_t integer = 0;
  double real = 0;
  std::vector<std::string> operators;
  std::vector<PythonNode> children;
};

/// Parses an expression: literals, names, lists and tuples, comprehensions, calls by name, subscripts, arithmetic, `& ^
/// |`, comparisons with `in` and `not in`, `not`, `and`, `or`, `… if … else …`. Nothing is evaluated. Throws
/// PythonError; text and nesting are bounded.
[[nodiscard]] PythonNode parse_python(std::string_view text);

}  // namespace pascaline
