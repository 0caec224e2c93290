#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pascaline {

/// A piece of an expression in the search spaces' language with bounds of its value, by which simpler expressions can
/// be chosen.
struct IntegerTerm {
  std::string text;  ///< a literal, a name, a call or something in parentheses: it can stand anywhere
  double low = 0;
  double high = 0;
  std::optional<std::int64_t> constant{};

  [[nodiscard]] bool is(std::int64_t value) const noexcept { return constant == value; }
  [[nodiscard]] bool can_be_zero() const noexcept { return low <= 0 && high >= 0; }
};

[[nodiscard]] IntegerTerm integer_constant(std::int64_t value);
/// An expression whose value is 0 or 1.
[[nodiscard]] IntegerTerm integer_truth(const std::string& text);
[[nodiscard]] IntegerTerm add(const IntegerTerm& a, const IntegerTerm& b);
[[nodiscard]] IntegerTerm subtract(const IntegerTerm& a, const IntegerTerm& b);
[[nodiscard]] IntegerTerm multiply(const IntegerTerm& a, const IntegerTerm& b);
/// The quotient rounded down, as Python's `//`; no value if b is 0.
[[nodiscard]] IntegerTerm floor_divide(const IntegerTerm& a, const IntegerTerm& b);
/// The remainder with b's sign, as Python's `%`; no value if b is 0.
[[nodiscard]] IntegerTerm floor_modulo(const IntegerTerm& a, const IntegerTerm& b);
[[nodiscard]] IntegerTerm negate(const IntegerTerm& a);
[[nodiscard]] IntegerTerm absolute(const IntegerTerm& a);
/// `condition ? a : b`.
[[nodiscard]] IntegerTerm choose(const std::string& condition, const IntegerTerm& a, const IntegerTerm& b);

}  // namespace pascaline
