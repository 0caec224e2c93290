#include "db/exchange/integer_term.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace pascaline {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

IntegerTerm term(std::string text, double low, double high) { return {std::move(text), low, high, std::nullopt}; }

// Bounds of the product; 0 times infinity is 0, for both stand for finite numbers.
std::pair<double, double> product_bounds(const IntegerTerm& a, const IntegerTerm& b) {
  double low = kUnbounded;
  double high = -kUnbounded;
  for (const double x : {a.low, a.high}) {
    for (const double y : {b.low, b.high}) {
      const double product = x == 0 || y == 0 ? 0 : x * y;
      low = std::min(low, product);
      high = std::max(high, product);
    }
  }
  return {low, high};
}

}  // namespace

IntegerTerm integer_constant(std::int64_t value) {
  // The language has no literal for the smallest number: it would be 2^63, negated.
  const std::string text = value == std::numeric_limits<std::int64_t>::min() ? fmt::format("({} - 1)", value + 1)
                           : value < 0                                       ? fmt::format("({})", value)
                                                                             : fmt::format("{}", value);
  const auto bound = static_cast<double>(value);
  return {text, bound, bound, value};
}

IntegerTerm integer_truth(const std::string& text) { return term(text, 0, 1); }

IntegerTerm add(const IntegerTerm& a, const IntegerTerm& b) {
  if (a.is(0) || b.is(0)) {
    return a.is(0) ? b : a;
  }
  std::int64_t sum = 0;
  if (a.constant && b.constant && !__builtin_add_overflow(*a.constant, *b.constant, &sum)) {
    return integer_constant(sum);
  }
  return term(fmt::format("({} + {})", a.text, b.text), a.low + b.low, a.high + b.high);
}

IntegerTerm subtract(const IntegerTerm& a, const IntegerTerm& b) {
  if (b.is(0)) {
    return a;
  }
  std::int64_t difference = 0;
  if (a.constant && b.constant && !__builtin_sub_overflow(*a.constant, *b.constant, &difference)) {
    return integer_constant(difference);
  }
  return term(fmt::format("({} - {})", a.text, b.text), a.low - b.high, a.high - b.low);
}

IntegerTerm multiply(const IntegerTerm& a, const IntegerTerm& b) {
  if (a.is(1) || b.is(1)) {
    return a.is(1) ? b : a;
  }
  std::int64_t product = 0;
  if (a.constant && b.constant && !__builtin_mul_overflow(*a.constant, *b.constant, &product)) {
    return integer_constant(product);
  }
  const auto [low, high] = product_bounds(a, b);
  return term(fmt::format("({} * {})", a.text, b.text), low, high);
}

IntegerTerm floor_divide(const IntegerTerm& a, const IntegerTerm& b) {
  if (b.is(1)) {
    return a;
  }
  if (a.low >= 0 && b.low >= 0) {
    return term(fmt::format("({} / {})", a.text, b.text), 0, a.high);
  }
  // Rounded towards zero, less one where that rounded up.
  const double most = std::max(std::abs(a.low), std::abs(a.high)) + 1;
  return term(fmt::format("({0} / {1} - ({0} % {1} != 0 && ({0} < 0) != ({1} < 0)))", a.text, b.text), -most, most);
}

IntegerTerm floor_modulo(const IntegerTerm& a, const IntegerTerm& b) {
  if (a.low >= 0 && b.low >= 0) {
    return term(fmt::format("({} % {})", a.text, b.text), 0, std::min(a.high, b.high));
  }
  const double low = std::min(b.low, 0.0);
  const double high = std::max(b.high, 0.0);
  if (b.low >= 0) {
    // Of a positive divisor the C remainder plus the divisor cannot overflow: they have opposite signs.
    return term(fmt::format("({0} % {1} < 0 ? {0} % {1} + {1} : {0} % {1})", a.text, b.text), low, high);
  }
  return term(fmt::format("({0} % {1} != 0 && ({0} < 0) != ({1} < 0) ? {0} % {1} + {1} : {0} % {1})", a.text, b.text),
              low, high);
}

IntegerTerm negate(const IntegerTerm& a) { return subtract(integer_constant(0), a); }

IntegerTerm absolute(const IntegerTerm& a) {
  if (a.low >= 0) {
    return a;
  }
  if (a.constant && *a.constant != std::numeric_limits<std::int64_t>::min()) {
    return integer_constant(-*a.constant);
  }
  return term(fmt::format("abs({})", a.text), 0, std::max(std::abs(a.low), std::abs(a.high)));
}

IntegerTerm choose(const std::string& condition, const IntegerTerm& a, const IntegerTerm& b) {
  return term(fmt::format("({} ? {} : {})", condition, a.text, b.text), std::min(a.low, b.low),
              std::max(a.high, b.high));
}

}  // namespace pascaline
