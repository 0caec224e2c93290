#include "core/space/expression.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

struct Case {
  const char* text;
  std::int64_t value;
};

// What the compiler makes of the text is what the expression must make of it. Warnings about missing parentheses
// would object to the very precedences under test.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Wdiv-by-zero"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wbool-compare"
#else
#pragma GCC diagnostic ignored "-Wlogical-op-parentheses"
#pragma GCC diagnostic ignored "-Wbitwise-op-parentheses"
#pragma GCC diagnostic ignored "-Wshift-op-parentheses"
#endif
#define AS_IN_C(expression) \
  Case { #expression, static_cast < std::int64_t>(expression) }

constexpr std::int64_t A = 7;
constexpr std::int64_t B = -3;
constexpr std::int64_t C = 0;
constexpr std::int64_t D = 12;

const Case kCases[] = {
    AS_IN_C(1 + 2 * 3),
    AS_IN_C((1 + 2) * 3),
    AS_IN_C(A - D - B),
    AS_IN_C(A / 2),
    AS_IN_C(-A / 2),
    AS_IN_C(A / -2),
    AS_IN_C(-A / -2),
    AS_IN_C(A % 3),
    AS_IN_C(-A % 3),
    AS_IN_C(A % B),
    AS_IN_C(-A % B),
    AS_IN_C(D / 5 * 5 + D % 5),
    AS_IN_C(100 / 7 / 2),
    AS_IN_C(100 % 7 * 3),
    AS_IN_C(2 * 100 % 7),
    AS_IN_C(1 << 2 + 3),
    AS_IN_C(1 << 2 << 3),
    AS_IN_C(256 >> 2 >> 1),
    AS_IN_C(-7 >> 1),
    AS_IN_C(D - 1 >> 1),
    AS_IN_C(1 + 2 < 4),
    AS_IN_C(1 << 3 < 9),
    AS_IN_C((1 < 2) != (3 < 2)),
    AS_IN_C((3 > 2) >= (2 > 3)),
    AS_IN_C(1 < 2 == 3 > 2),
    AS_IN_C((1 == 2) != 1),
    AS_IN_C(A <= 7 == D >= 12),
    AS_IN_C(6 & 3 == 3),
    AS_IN_C((6 & 3) == 2),
    AS_IN_C(6 | 1 ^ 3 & 5),
    AS_IN_C(6 ^ 3 | 8),
    AS_IN_C(1 | 2 == 2),
    AS_IN_C(12 & 10 ^ 6),
    AS_IN_C(4 & 4 && 2),
    AS_IN_C(1 || 0 && 0),
    AS_IN_C((1 || 0) && 0),
    AS_IN_C(0 && 1 || 1),
    AS_IN_C(0 || 2),
    AS_IN_C(5 && 6),
    AS_IN_C(!5),
    AS_IN_C(!!5),
    AS_IN_C(!C + 1),
    AS_IN_C(-A + 1),
    AS_IN_C(~A & 15),
    AS_IN_C(~-1),
    AS_IN_C(- -A),
    AS_IN_C(+A - +B),
    AS_IN_C(-A * -B),
    AS_IN_C(!A == C),
    AS_IN_C(-2 % 2 == 0),
    AS_IN_C(A ? 1 : 2),
    AS_IN_C(C ? 1 : 2),
    AS_IN_C(C   ? 1
            : A ? 3
                : 4),
    AS_IN_C(A ? C ? 1 : 2 : 3),
    AS_IN_C(A > 3 ? A + 1 : B),
    AS_IN_C(A < 3 || D ? 10 : 20),
    AS_IN_C(1 + (A ? 2 : 3) * 4),
    AS_IN_C(A == 7 ? B == -3 : C),
    AS_IN_C(0x1F + 0XaB),
    AS_IN_C(0),
    AS_IN_C(9223372036854775807),
    AS_IN_C(-9223372036854775807 - 1),
    AS_IN_C(0x7fffffffffffffff),
    AS_IN_C(A != 7 && D / C),
    AS_IN_C(C == 0 || D % C),
    AS_IN_C(C ? D / C : 5),
    AS_IN_C(2 * A * A - D * B + C * D),
    AS_IN_C((A + 1) * (D - 2) / (B + 1) % 11),
    AS_IN_C(A& D | B & 8 ^ 1),
    AS_IN_C(1 < 2 & 2 < 3),
    AS_IN_C(3 & 1 << 1),
    AS_IN_C(1 == 1 | 0 != 0 ^ 1),
};
#pragma GCC diagnostic pop

class ExpressionTest : public ::testing::Test {
 protected:
  ExpressionTest() {
    for (const char* name : {"A", "B", "C", "D"}) {
      symbols_.add(name);
    }
    symbols_.forbid("STORAGE", "it is a type; use sizeof(STORAGE)");
    symbols_.add_size_of("STORAGE");
  }
  [[nodiscard]] std::int64_t value(const std::string& text) const {
    return Expression::parse(text, symbols_).evaluate(slots_);
  }
  [[nodiscard]] Arithmetic trouble(const std::string& text) const {
    Arithmetic why = Arithmetic::fine;
    EXPECT_FALSE(Expression::parse(text, symbols_).try_evaluate(slots_, &why).has_value()) << text;
    return why;
  }

  Symbols symbols_;
  std::vector<std::int64_t> slots_{A, B, C, D, 2};
};

TEST_F(ExpressionTest, AgreesWithTheCompiler) {
  for (const Case& test : kCases) {
    EXPECT_EQ(value(test.text), test.value) << test.text;
  }
}

TEST_F(ExpressionTest, SpaceDoesNotMatter) {
  EXPECT_EQ(value("A+D*-B"), value("  A\t+\nD  *  -  B "));
  EXPECT_EQ(value("A>=7&&D!=1"), 1);
  EXPECT_EQ(value("A>0?B:C"), -3);
  EXPECT_EQ(value("sizeof ( STORAGE )"), 2);
}

TEST_F(ExpressionTest, Functions) {
  EXPECT_EQ(value("min(A, B)"), -3);
  EXPECT_EQ(value("max(A, B)"), 7);
  EXPECT_EQ(value("abs(B) + abs(A)"), 10);
  EXPECT_EQ(value("ceil_div(7, 2)"), 4);
  EXPECT_EQ(value("ceil_div(8, 2)"), 4);
  EXPECT_EQ(value("ceil_div(-7, 2)"), -3);
  EXPECT_EQ(value("ceil_div(7, -2)"), -3);
  EXPECT_EQ(value("ceil_div(-7, -2)"), 4);
  EXPECT_EQ(value("ceil_div(0, -2)"), 0);
  EXPECT_EQ(value("round_up(7, 4)"), 8);
  EXPECT_EQ(value("round_up(8, 4)"), 8);
  EXPECT_EQ(value("round_up(-7, 4)"), -4);
  EXPECT_EQ(value("is_pow2(64) * 100 + is_pow2(65) * 10 + is_pow2(0) + is_pow2(-4)"), 100);
  EXPECT_EQ(value("is_pow2(1)"), 1);
  EXPECT_EQ(value("log2(1) + log2(64) * 10 + log2(65) * 100"), 660);
  EXPECT_EQ(value("min(max(A, D), ceil_div(D, abs(B))) + 1"), 5);
}

TEST_F(ExpressionTest, SizeOfReadsTheTypesSlot) {
  const Expression expression = Expression::parse("D * sizeof(STORAGE)", symbols_);
  EXPECT_EQ(expression.evaluate(slots_), 24);
  EXPECT_EQ(expression.used_slots(), (std::vector<int>{3, 4}));
}

TEST_F(ExpressionTest, ShortCircuitKeepsTheUnusedSideFromFailing) {
  EXPECT_EQ(value("C != 0 && D / C > 1"), 0);
  EXPECT_EQ(value("C == 0 || D % C == 0"), 1);
  EXPECT_EQ(value("C == 0 ? -1 : ceil_div(D, C)"), -1);
  EXPECT_EQ(value("A ? D : 1 << 100"), 12);
  EXPECT_EQ(trouble("C == 0 && D / C"), Arithmetic::division_by_zero);
}

TEST_F(ExpressionTest, WhatHasNoValue) {
  EXPECT_EQ(trouble("D / C"), Arithmetic::division_by_zero);
  EXPECT_EQ(trouble("D % C"), Arithmetic::division_by_zero);
  EXPECT_EQ(trouble("ceil_div(D, 0)"), Arithmetic::division_by_zero);
  EXPECT_EQ(trouble("round_up(D, 0)"), Arithmetic::division_by_zero);
  EXPECT_EQ(trouble("9223372036854775807 + 1"), Arithmetic::overflow);
  EXPECT_EQ(trouble("-9223372036854775807 - 2"), Arithmetic::overflow);
  EXPECT_EQ(trouble("4611686018427387904 * 2"), Arithmetic::overflow);
  EXPECT_EQ(trouble("-(-9223372036854775807 - 1)"), Arithmetic::overflow);
  EXPECT_EQ(trouble("abs(-9223372036854775807 - 1)"), Arithmetic::overflow);
  EXPECT_EQ(trouble("(-9223372036854775807 - 1) / -1"), Arithmetic::overflow);
  EXPECT_EQ(trouble("(-9223372036854775807 - 1) % -1"), Arithmetic::overflow);
  EXPECT_EQ(trouble("round_up(9223372036854775807, 2)"), Arithmetic::overflow);
  EXPECT_EQ(trouble("log2(0)"), Arithmetic::overflow);
  EXPECT_EQ(trouble("log2(-8)"), Arithmetic::overflow);
  EXPECT_EQ(trouble("1 << 63"), Arithmetic::overflow);
  EXPECT_EQ(trouble("1 << 64"), Arithmetic::bad_shift);
  EXPECT_EQ(trouble("1 << -1"), Arithmetic::bad_shift);
  EXPECT_EQ(trouble("-1 << 1"), Arithmetic::bad_shift);
  EXPECT_EQ(trouble("8 >> 64"), Arithmetic::bad_shift);
  EXPECT_EQ(trouble("8 >> -1"), Arithmetic::bad_shift);
}

TEST_F(ExpressionTest, LimitsOfSixtyFourBits) {
  EXPECT_EQ(value("1 << 62"), std::int64_t{1} << 62);
  EXPECT_EQ(value("0 << 63"), 0);
  EXPECT_EQ(value("-1 >> 63"), -1);
  EXPECT_EQ(value("9223372036854775806 + 1"), kMax);
  EXPECT_EQ(value("-9223372036854775807 - 1"), kMin);
  EXPECT_EQ(value("~9223372036854775807"), kMin);
  EXPECT_EQ(value("ceil_div(9223372036854775807, 2)"), kMax / 2 + 1);
}

TEST_F(ExpressionTest, EvaluateSaysWhichExpressionHasNoValue) {
  try {
    (void)value("D / C");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "expression 'D / C' divides by zero");
  }
}

TEST_F(ExpressionTest, DefinedNamesStandForTheirExpressionInParentheses) {
  symbols_.define("SUM", Expression::parse("A + B", symbols_));
  symbols_.define("CHOICE", Expression::parse("SUM > 3 ? D : SUM && B", symbols_));
  EXPECT_EQ(value("2 * SUM * 2"), 4 * (A + B));
  EXPECT_EQ(value("A == 7 ? CHOICE + 1 : 0"), (A + B > 3 ? D : 1) + 1)
      << "jumps land in the expression that they stand in";
  EXPECT_EQ(value("CHOICE || CHOICE"), 1);
  EXPECT_EQ(Expression::parse("SUM + D", symbols_).used_slots(), (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(Expression::parse("SUM + D", symbols_).text(), "SUM + D");
  EXPECT_THROW(symbols_.define("A", Expression::constant(1)), Error);
  EXPECT_THROW(symbols_.add("SUM"), Error);
}

TEST_F(ExpressionTest, DefinedNamesDoNotGrowBeyondBounds) {
  symbols_.define("D0", Expression::parse("A + 1", symbols_));
  const auto grow = [&] {
    for (int i = 1; i < 40; ++i) {
      const std::string last = "D" + std::to_string(i - 1);
      symbols_.define("D" + std::to_string(i), Expression::parse(last + " + " + last, symbols_));
    }
  };
  EXPECT_THROW(grow(), ExpressionError);
  Symbols deep;
  deep.define("E0", Expression::constant(1));
  const auto nest = [&] {
    for (int i = 1; i < 100; ++i) {
      deep.define("E" + std::to_string(i), Expression::parse("1 + E" + std::to_string(i - 1), deep));
    }
  };
  EXPECT_THROW(nest(), ExpressionError) << "it needs more stack than there is";
}

TEST_F(ExpressionTest, RemembersTextAndSlots) {
  const Expression expression = Expression::parse("D > 1 ? B : D + A", symbols_);
  EXPECT_EQ(expression.text(), "D > 1 ? B : D + A");
  EXPECT_EQ(expression.used_slots(), (std::vector<int>{0, 1, 3}));
  EXPECT_TRUE(Expression::parse("1 + 2", symbols_).used_slots().empty());
}

TEST(ExpressionConstantTest, HoldsItsValue) {
  EXPECT_EQ(Expression::constant(-42).evaluate({}), -42);
  EXPECT_EQ(Expression::constant(-42).text(), "-42");
  EXPECT_EQ(Expression().evaluate({}), 0);
}

}  // namespace
}  // namespace pascaline
