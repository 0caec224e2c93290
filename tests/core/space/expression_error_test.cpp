#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"
#include "core/space/expression.hpp"

namespace pascaline {
namespace {

Symbols symbols() {
  Symbols symbols;
  symbols.add("A");
  symbols.add("min_blocks");
  symbols.forbid("STORAGE", "it is a type; use sizeof(STORAGE)");
  symbols.add_size_of("STORAGE");
  symbols.add_forbidden("MODE", "its values are not integers");
  symbols.define("IS_LARGE", Expression::parse("32 < A", symbols));
  symbols.define("SIZE", Expression::parse("A > 1 ? A : A == 0", symbols));
  return symbols;
}

struct BadText {
  const char* text;
  int column;
  const char* message;  // part of it
};

const BadText kBadTexts[] = {
    {"", 1, "expected a value before the end"},
    {"   ", 4, "expected a value before the end"},
    {"A +", 4, "expected a value before the end"},
    {"A + * 2", 5, "expected a value before '*'"},
    {"A A", 3, "unexpected 'A'"},
    {"(A", 3, "expected ')' before the end"},
    {"A)", 2, "unexpected ')'"},
    {"A ? 1", 6, "expected ':' before the end"},
    {"A ? 1 ; 2", 7, "expected ':' before ';'"},
    {"A : 1", 3, "unexpected ':'"},
    {"B", 1, "unknown name 'B'"},
    {"A + Bad * 2", 5, "unknown name 'Bad'"},
    {"1 + STORAGE", 5, "it is a type"},
    {"MODE == 1", 1, "its values are not integers"},
    {"sizeof(MODE)", 1, "unknown name 'sizeof(MODE)'"},
    {"sizeof(A)", 1, "unknown name 'sizeof(A)'"},
    {"sizeof()", 1, "unknown name"},
    {"sizeof A", 8, "expected '('"},
    {"min(A)", 6, "expected ','"},
    {"min(A, 1, 2)", 9, "expected ')'"},
    {"abs()", 5, "expected a value before ')'"},
    {"min", 1, "unknown name 'min'"},
    {"exp(A)", 1, "unknown name 'exp'"},
    {"1.5", 2, "not an integer literal"},
    {"10u", 3, "not an integer literal"},
    {"0x", 3, "expected hexadecimal digits"},
    {"0xg", 3, "not an integer literal"},
    {"010", 1, "octal"},
    {"9223372036854775808", 1, "does not fit 64 bits"},
    {"1 + 0x8000000000000000", 5, "does not fit 64 bits"},
    {"A = 1", 3, "unexpected '='"},
    {"32 < A < 512", 8, "comparisons cannot be chained; write 32 < A && A < 512"},
    {"1 && 32<A + 1 <=  512 && A", 15, "write 32<A + 1 && A + 1 <=  512"},
    {"A == 1 == 1", 8, "write A == 1 && 1 == 1"},
    {"1 != A >= 3 > 2", 13, "write A >= 3 && 3 > 2"},
    {"A ? 1 < A < 3 : 0", 11, "write 1 < A && A < 3"},
    {"min(1 > A > 3, 2)", 11, "write 1 > A && A > 3"},
    {"(32 < A) < 512", 10, "comparisons cannot be chained; write 32 < A && A < 512"},
    {"(( 32<A ))<=512", 11, "write 32<A && A<=512"},
    {"1 + 511 > (32 < A)", 9, "write 1 + 511 > 32 && 32 < A"},
    {"A && (A == 1) < 2", 15, "write A == 1 && 1 < 2"},
    {"(A > 1 > 0) == 0", 8, "write A > 1 && 1 > 0"},
    {"IS_LARGE < 512", 10, "comparisons cannot be chained; IS_LARGE is 0 or 1, so join comparisons with &&"},
    {"512 >= (IS_LARGE)", 5, "(IS_LARGE) is 0 or 1"},
    {"A += 1", 4, "expected a value before '='"},
    {"A, 1", 2, "unexpected ','"},
    {"A <=> 1", 5, "expected a value before '>'"},
    {"A && ", 6, "expected a value before the end"},
    {"A || || A", 6, "expected a value before '|'"},
    {"A\xC3\x97 2", 2, "unexpected '\xC3\x97'"},
    {"\"text\"", 1, "expected a value"},
    {"A[0]", 2, "unexpected '['"},
    {"!= 1", 1, "expected a value"},
};

TEST(ExpressionErrorTest, SaysWhatIsWrongAndWhere) {
  const Symbols known = symbols();
  for (const BadText& test : kBadTexts) {
    try {
      (void)Expression::parse(test.text, known);
      ADD_FAILURE() << "accepted: " << test.text;
    } catch (const ExpressionError& error) {
      EXPECT_EQ(error.column(), test.column) << test.text << ": " << error.what();
      EXPECT_NE(std::string(error.what()).find(test.message), std::string::npos) << test.text << ": " << error.what();
    }
  }
}

TEST(ExpressionErrorTest, TwoComparisonsMayBeCompared) {
  const Symbols known = symbols();
  const std::int64_t slots[] = {3, 1, 0, 0};
  for (const char* text : {"(A > 1) == (min_blocks > 0)", "(A > 1) != (A > 3)", "(A == 3) == 1", "A < 4 == min_blocks",
                           "(A > 5) <= (A > 2)", "IS_LARGE == 0", "(A > 1) + (A > 2) >= 2", "(A > 1 ? A : 0) > 2",
                           "SIZE > 2", "min(A > 1, A > 2) > 0", "-(A > 1) < 0"}) {
    EXPECT_EQ(Expression::parse(text, known).evaluate(slots), 1) << text;
  }
}

TEST(ExpressionErrorTest, NestingIsBounded) {
  const Symbols known = symbols();
  const auto nested = [](const std::string& open, int levels, const std::string& close) {
    std::string text;
    for (int i = 0; i < levels; ++i) {
      text += open;
    }
    text += "A";
    for (int i = 0; i < levels; ++i) {
      text += close;
    }
    return text;
  };
  EXPECT_NO_THROW((void)Expression::parse(nested("(", 30, ")"), known));
  EXPECT_NO_THROW((void)Expression::parse(nested("-", 60, ""), known));
  for (const auto& [open, close] : {std::pair<const char*, const char*>{"(", ")"},
                                    {"-", ""},
                                    {"!", ""},
                                    {"A ? ", " : A"},
                                    {"A ? A : ", ""},
                                    {"abs(", ")"}}) {
    EXPECT_THROW((void)Expression::parse(nested(open, 500, close), known), ExpressionError) << open;
  }
}

TEST(ExpressionErrorTest, LongFlatExpressionsAreFineUpToTheLimit) {
  const Symbols known = symbols();
  std::string text = "A";
  while (text.size() < 4000) {
    text += " + A";
  }
  const std::int64_t slots[] = {1, 0, 0, 0};
  EXPECT_GT(Expression::parse(text, known).evaluate(slots), 900);
  EXPECT_THROW((void)Expression::parse(text + std::string(1000, ' '), known), ExpressionError);
}

TEST(ExpressionErrorTest, TooManyIntermediateValues) {
  std::string text = "1";
  for (int i = 0; i < 29; ++i) {
    text = "1 || 1 && 1 | 1 ^ 1 & 1 == 1 < 1 << 1 + 1 * (" + text + ")";
  }
  EXPECT_THROW((void)Expression::parse(text, symbols()), ExpressionError);
}

TEST(SymbolsTest, RefusesNamesThatCannotBeUsed) {
  Symbols known = symbols();
  for (const char* name : {"", "1A", "A B", "A-B", "sizeof(X)", "sizeof", "min", "log2", "A", "STORAGE", "MODE"}) {
    EXPECT_THROW(known.add(name), Error) << name;
    EXPECT_THROW(known.forbid(name, "why"), Error) << name;
  }
  EXPECT_THROW(known.add_size_of("STORAGE"), Error);
  EXPECT_THROW(known.add_size_of("not a name"), Error);
}

TEST(SymbolsTest, SlotsCountUp) {
  const Symbols known = symbols();
  EXPECT_EQ(known.slot("A"), 0);
  EXPECT_EQ(known.slot("min_blocks"), 1);
  EXPECT_EQ(known.slot("sizeof(STORAGE)"), 2);
  EXPECT_EQ(known.names().size(), 4U);
  EXPECT_FALSE(known.slot("STORAGE").has_value());
  EXPECT_FALSE(known.slot("MODE").has_value());
  EXPECT_FALSE(known.slot("").has_value());
  EXPECT_NE(known.forbidden("MODE"), nullptr);
}

}  // namespace
}  // namespace pascaline
