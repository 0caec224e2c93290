#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/config.hpp"

namespace pascaline {

/// The values that a Python expression lists, worked out by a small interpreter of its own: literals, lists and tuples,
/// `range`, comprehensions, arithmetic on numbers and lists, comparisons, and the functions list, tuple, sorted, len,
/// min, max, sum, abs, int and float. Integers have 64 bits. Steps, values and nesting are bounded. Throws PythonError
/// with the column.
[[nodiscard]] std::vector<Value> python_values(std::string_view text);

}  // namespace pascaline
