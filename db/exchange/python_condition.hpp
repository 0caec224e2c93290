#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/config.hpp"

namespace pascaline {

/// A name that a Python expression may use, with the values that it can have: integers and booleans. What has none, or
/// others, may not be used.
struct PythonName {
  std::string name;
  std::vector<Value> values;
  /// What a subscript of the name means (`ProblemSize[0]`), if it is a list.
  std::vector<std::int64_t> elements{};
};

/// A condition in Python as an expression of the search spaces' language (core/space/expression.hpp), which is not 0
/// exactly where Python finds the condition true. Python's meaning is kept: floor division and modulo of negatives, `/`
/// as exact fractions, chains of comparisons, `in` lists, what `and` and `or` give. Where Python would divide by zero,
/// or a number does not fit 64 bits, the expression has no value. Throws PythonError with the column for what the
/// language lacks: text, reals that are not whole, unknown names and functions, powers with an exponent that varies
/// (but those of 2).
[[nodiscard]] std::string translate_condition(std::string_view python, const std::vector<PythonName>& names);

/// As above, of a number: throws PythonError also if it could be a fraction, unless `round_up`, which takes the next
/// whole number above.
[[nodiscard]] std::string translate_number(std::string_view python, const std::vector<PythonName>& names,
                                           bool round_up = false);

}  // namespace pascaline
