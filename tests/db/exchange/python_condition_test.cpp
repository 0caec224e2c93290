#include "db/exchange/python_condition.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/space/expression.hpp"
#include "db/exchange/python_syntax.hpp"

namespace pascaline {
namespace {

std::vector<Value> integers(std::initializer_list<std::int64_t> values) {
  return std::vector<Value>(values.begin(), values.end());
}

std::string condition_refusal(const std::string& python, const std::vector<PythonName>& names) {
  try {
    return "was translated to " + translate_condition(python, names);
  } catch (const PythonError& error) {
    return std::to_string(error.column()) + ": " + error.what();
  }
}

struct Golden {
  std::string python;
  std::string truths;  // for each a and b below: true, false, or division by zero
};

// As Python 3 evaluates them.
const std::vector<Golden>& golden() {
  static const std::vector<Golden> cases{
      {"a // b", "1x110x110x001x001x101x11"},
      {"a % b", "1x111x010x001x110x110x01"},
      {"-a // b", "1x111x100x000x111x111x11"},
      {"(-a) % b == 2", "0x010x010x000x000x010x00"},
      {"a / b > 1", "1x000x000x000x000x100x11"},
      {"a / b == 2", "0x000x000x000x000x000x00"},
      {"a / b % 2 == 0", "0x000x001x110x000x001x00"},
      {"not a", "000000001111000000000000"},
      {"a and b", "101110110000101110111011"},
      {"a or b", "111111111011111111111111"},
      {"a < b < 7", "111101110011001100010000"},
      {"a < b > -3 != a", "011101110011001100010000"},
      {"1 < a <= b", "000000000000000000010000"},
      {"a == b == 3", "000000000000000000000000"},
      {"a in [1, 2, 3]", "000000000000111111110000"},
      {"a not in (3, b)", "111111111011111100001111"},
      {"abs(a) * 2 > b", "111111101000110011111111"},
      {"min(a, b) > 0", "000000000000001100110011"},
      {"max(a, b, 2) == 2", "111011101110111000000000"},
      {"a ** 2 > b", "111111101000110011111111"},
      {"2 ** 3 == a + b", "000000000000000000010010"},
      {"-a ** 2 < 0", "111111110000111111111111"},
      {"a if b > 0 else -a", "111111110000111111111111"},
      {"(a and b) + 1", "111111111111111111111111"},
      {"(a > b) + (b > 0) == 1", "001110111011111111011100"},
      {"not a == b", "111111111011111111111111"},
      {"a & 1 == 1", "111100000000111111110000"},
      {"(a & 3) | b", "111111111011111111111111"},
      {"a ^ b", "111111111011111111111111"},
      {"a * b // 3 % 4", "101010100000100110111001"},
      {"-7 // 2 == a - 4", "000000001111000000000000"},
      {"a - b - 1", "111101111111101111011110"},
      {"b != 0 and a % b == 0", "000000101011000010001010"},
      {"b == 0 or a // b", "111101110100110011101111"},
      {"a // b * b + a % b == a", "1x111x111x111x111x111x11"},
      {"(a / b) * b == a", "1x111x111x111x111x111x11"},
      {"a % -3", "111111110000111100000000"},
      {"True + a", "111111111111111111111111"},
      {"+a - -b", "111111011011111101111111"},
      {"3 <= a and a <= 7 or b < 0", "100010001000100011111111"},
      {"not (a > 0 or b > 0)", "110011001100000000000000"},
      {"a / 2 // 1 == 1", "000000000000000011110000"},
      {"a == 3.0", "000000000000000011110000"},
      {"(a or b) in [1, 5]", "000000000001111100000000"},
  };
  return cases;
}

TEST(PythonCondition, MeansWhatPythonMeans) {
  const std::array<std::int64_t, 6> as{-7, -2, 0, 1, 3, 6};
  const std::array<std::int64_t, 4> bs{-3, 0, 2, 5};
  Symbols symbols;
  symbols.add("a");
  symbols.add("b");
  const std::vector<PythonName> names{{"a", integers({-7, -2, 0, 1, 3, 6})}, {"b", integers({-3, 0, 2, 5})}};
  for (const Golden& entry : golden()) {
    const std::string text = translate_condition(entry.python, names);
    const Expression expression = Expression::parse(text, symbols);
    std::string truths;
    for (const std::int64_t a : as) {
      for (const std::int64_t b : bs) {
        const auto value = expression.try_evaluate(std::array{a, b});
        truths += value ? (*value != 0 ? '1' : '0') : 'x';
      }
    }
    EXPECT_EQ(truths, entry.truths) << entry.python << " became " << text;
  }
}

TEST(PythonCondition, OfPositiveNumbersItStaysReadable) {
  const std::vector<PythonName> names{{"x", integers({16, 32})}, {"y", integers({1, 2})}, {"on", {true, false}}};
  EXPECT_EQ(translate_condition("x * y <= 1024", names), "((x * y) <= 1024)");
  EXPECT_EQ(translate_condition("x % y == 0 and x // y > 3", names), "(((x % y) == 0) && ((x / y) > 3))");
  EXPECT_EQ(translate_condition("32 <= x * y <= 1024", names), "((32 <= (x * y)) && ((x * y) <= 1024))");
  EXPECT_EQ(translate_condition("x / y == 16", names), "(x == (16 * y))");
  EXPECT_EQ(translate_condition("not on or 2 ** y > 3", names), "(!on || ((1 << y) > 3))");
  EXPECT_EQ(translate_condition("max(x) == x", names), "(32 == x)");
  EXPECT_EQ(translate_number("size[0] // x", {{"size", {}, {4096, 64}}, names[0]}), "(4096 / x)");
  EXPECT_EQ(translate_number("64 / 4", {}), "16");
  EXPECT_EQ(translate_number("-3", {}), "(-3)");
}

// Each operand of a chain is translated once: nested, these would take 2^30 steps otherwise.
TEST(PythonCondition, NestedChainsTakeNoTime) {
  const std::vector<PythonName> names{{"x", integers({1, 2})}};
  const auto nested = [](const std::string& end) {
    std::string text = "x";
    for (int i = 0; i < 30; ++i) {
      text = "(0 < " + text + end + ")";
    }
    return text;
  };
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(condition_refusal(nested(" not in []"), names).substr(0, 3), "was");
  EXPECT_EQ(condition_refusal(nested(" < 2"), names), "112: the expression becomes longer than 4096 characters");
  EXPECT_EQ(condition_refusal(nested("**0 < 2"), names).substr(0, 3), "was");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20))
      << "it must not double with each bracket";
}

TEST(PythonCondition, WhatTheLanguageLacksIsRefusedWithItsColumn) {
  const std::vector<PythonName> names{
      {"x", integers({1, 2})}, {"real", {0.5}}, {"text", {std::string("row")}}, {"size", {}, {64, 32}}};
  const std::vector<std::pair<std::string, std::string>> cases{
      {"x == 'row'", "6: text cannot be used in conditions"},
      {"text == x", "1: 'text' is text, which cannot be used in conditions"},
      {"x > real", "5: 'real' is a real, which cannot be used in conditions"},
      {"x > 0.5", "5: a real that is not whole cannot be used in conditions; write it as a fraction, as in 1 / 2"},
      {"x + y", "5: unknown name 'y'"},
      {"sqrt(x) > 1", "1: the function 'sqrt' cannot be used in conditions; abs, min and max can"},
      {"x ** x > 1",
       "3: a power needs an exponent that is a constant from -62 to 62, or the base 2 and an exponent from 0 to 62"},
      {"x in size", "6: 'in' needs a list or a tuple that is written out"},
      {"size > 3", "1: 'size' is a list; give an index, as in size[0]"},
      {"size[2] > 3", "5: 'size' has no element with this index"},
      {"[1] == x", "1: a list can only stand behind 'in'"},
      {"[x for x in [1]] == x", "4: comprehensions cannot be used in conditions"},
      {"x << 2", "3: shifts cannot be used"},
      {"x is 2", "3: 'is' cannot be used; compare with =="},
      {"~x", "2: '~' cannot be used"},
      {"x.y", "2: only functions can be called, by their names, and nothing has members here"},
      {"(x)(1)", "4: only functions can be called, by their names, and nothing has members here"},
      {"__import__('os')", "1: the function '__import__' cannot be used in conditions; abs, min and max can"},
      {"x >", "4: expected a value before the end"},
      {"", "1: expected a value before the end"},
      {"(x", "3: expected ')' before the end"},
      {"x x", "3: unexpected 'x'"},
      {"x == 1 1", "8: unexpected '1'"},
      {"x > 99999999999999999999", "5: the number is too large"},
      {"x > 1abc", "5: not a number"},
      {"x > 'a", "7: the text has no closing quote"},
      {"lambda: x", "1: expected a value before 'lambda'"},
      {"x \xc3\xa9", "3: unexpected '\xc3\xa9'"},
  };
  for (const auto& [python, message] : cases) {
    EXPECT_EQ(condition_refusal(python, names), message) << python;
  }
  EXPECT_EQ(condition_refusal(std::string(300, '(') + "x" + std::string(300, ')'), names).substr(0, 3), "51:");
  std::string sum = "x";
  for (int i = 0; i < 2000; ++i) {
    sum += "+x";
  }
  EXPECT_NE(condition_refusal(sum, names).find("more than 1000 operators"), std::string::npos);
  std::string chain = "x % -3";
  for (int i = 0; i < 30; ++i) {
    chain = "(" + chain + ") % -3";
  }
  EXPECT_NE(condition_refusal(chain, names).find("becomes longer than 4096 characters"), std::string::npos);
}

// An evaluator with Python's meaning, of exact fractions, that shares nothing with the translation.
__extension__ using Wide = __int128;
struct Exact {
  Wide above = 0;
  Wide below = 1;
};
struct DividedByZero {};
struct TooLarge {};

Exact exact(Wide above, Wide below) {
  if (below == 0) {
    throw DividedByZero();
  }
  Wide a = above < 0 ? -above : above;
  Wide b = below < 0 ? -below : below;
  const Wide most = static_cast<Wide>(1) << 60;
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  const Wide sign = below < 0 ? -1 : 1;
  const Exact out{sign * above / a, sign * below / a};
  if (out.above > most || out.above < -most || out.below > most) {
    throw TooLarge();
  }
  return out;
}

Wide floored(const Exact& value) {
  Wide out = value.above / value.below;
  return out - (value.above % value.below < 0 ? 1 : 0);
}

Exact quotient(const Exact& a, const Exact& b) { return exact(a.above * b.below, a.below * b.above); }
Exact difference(const Exact& a, const Exact& b) {
  return exact(a.above * b.below - b.above * a.below, a.below * b.below);
}

struct Tree {
  std::string word;  // operator, name or literal
  std::int64_t number = 0;
  std::vector<Tree> children;
};

using Values = std::array<std::int64_t, 3>;

bool compared(const std::string& word, const Exact& a, const Exact& b) {
  const Wide sign = difference(a, b).above;
  return word == "<"    ? sign < 0
         : word == "<=" ? sign <= 0
         : word == ">"  ? sign > 0
         : word == ">=" ? sign >= 0
         : word == "==" ? sign == 0
                        : sign != 0;
}

Exact evaluated(const Tree& tree, const Values& values) {
  const auto child = [&](std::size_t i) { return evaluated(tree.children[i], values); };
  const std::string& word = tree.word;
  if (word == "name") {
    return {values[static_cast<std::size_t>(tree.number)], 1};
  }
  if (word == "literal") {
    return {tree.number, 1};
  }
  if (word == "and" || word == "or") {
    const Exact left = child(0);
    return (left.above != 0) == (word == "or") ? left : child(1);
  }
  if (word == "not") {
    return {child(0).above == 0 ? 1 : 0, 1};
  }
  if (word == "if") {
    return child(1).above != 0 ? child(0) : child(2);
  }
  const Exact a = child(0);
  if (word == "neg" || word == "abs") {
    return {word == "neg" || a.above < 0 ? -a.above : a.above, a.below};
  }
  if (word == "in") {
    return {std::any_of(tree.children.begin() + 1, tree.children.end(),
                        [&](const Tree& element) { return compared("==", a, evaluated(element, values)); }),
            1};
  }
  const Exact b = child(1);
  if (word == "chain") {
    return {compared("<", a, b) && compared("<=", b, child(2)) ? 1 : 0, 1};
  }
  if (word == "+") {
    return difference(a, {-b.above, b.below});
  }
  if (word == "-") {
    return difference(a, b);
  }
  if (word == "*") {
    return exact(a.above * b.above, a.below * b.below);
  }
  if (word == "/") {
    return quotient(a, b);
  }
  if (word == "//") {
    return {floored(quotient(a, b)), 1};
  }
  if (word == "%") {
    const Exact whole{floored(quotient(a, b)), 1};
    return difference(a, exact(whole.above * b.above, b.below));
  }
  if (word == "min" || word == "max") {
    return compared(word == "min" ? "<" : ">", b, a) ? b : a;
  }
  return {compared(word, a, b) ? 1 : 0, 1};
}

std::string written(const Tree& tree) {
  const auto child = [&](std::size_t i) { return written(tree.children[i]); };
  const std::string& word = tree.word;
  if (word == "name") {
    return std::string(1, static_cast<char>('a' + tree.number));
  }
  if (word == "literal") {
    return std::to_string(tree.number);
  }
  if (word == "not") {
    return "(not " + child(0) + ")";
  }
  if (word == "neg") {
    return "(-" + child(0) + ")";
  }
  if (word == "abs") {
    return "abs(" + child(0) + ")";
  }
  if (word == "min" || word == "max") {
    return word + "(" + child(0) + ", " + child(1) + ")";
  }
  if (word == "if") {
    return "(" + child(0) + " if " + child(1) + " else " + child(2) + ")";
  }
  if (word == "chain") {
    return "(" + child(0) + " < " + child(1) + " <= " + child(2) + ")";
  }
  if (word == "in") {
    return "(" + child(0) + " in [" + child(1) + ", " + child(2) + "])";
  }
  return "(" + child(0) + " " + word + " " + child(1) + ")";
}

class TreeMaker {
 public:
  explicit TreeMaker(std::uint64_t seed) : random_(seed) {}

  Tree make(int depth) {
    if (depth == 0 || below(8) == 0) {
      return below(3) == 0 ? Tree{"literal", static_cast<std::int64_t>(below(9)), {}}
                           : Tree{"name", static_cast<std::int64_t>(below(3)), {}};
    }
    static const std::vector<std::pair<std::string, int>> kWords{
        {"+", 2},   {"-", 2},   {"*", 2},   {"/", 2},  {"//", 2},    {"%", 2},  {"<", 2},   {"<=", 2},
        {">", 2},   {">=", 2},  {"==", 2},  {"!=", 2}, {"and", 2},   {"or", 2}, {"not", 1}, {"neg", 1},
        {"abs", 1}, {"min", 2}, {"max", 2}, {"if", 3}, {"chain", 3}, {"in", 3}, {"//", 2},  {"%", 2}};
    const auto& [word, children] = kWords[below(kWords.size())];
    Tree tree{word, 0, {}};
    for (int i = 0; i < children; ++i) {
      tree.children.push_back(make(word == "in" && i > 0 ? 0 : depth - 1));
    }
    return tree;
  }
  std::size_t below(std::size_t bound) { return random_() % bound; }

 private:
  std::mt19937_64 random_;
};

TEST(PythonCondition, RandomExpressionsMeanWhatTheyMean) {
  Symbols symbols;
  std::vector<PythonName> names;
  const std::array<std::vector<std::int64_t>, 3> values{{{1, 2, 8}, {-3, 0, 5}, {-4, -1}}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    names.push_back(
        {std::string(1, static_cast<char>('a' + i)), std::vector<Value>(values[i].begin(), values[i].end())});
    symbols.add(names.back().name);
  }
  TreeMaker maker(3);
  int checked = 0;
  int without_value = 0;
  int too_large = 0;
  for (int i = 0; i < 4000; ++i) {
    const Tree tree = maker.make(1 + i % 4);
    const std::string python = written(tree);
    std::optional<Expression> expression;
    std::string text;
    try {
      text = translate_condition(python, names);
      expression = Expression::parse(text, symbols);
    } catch (const PythonError&) {
      ++too_large;  // longer than the language takes
      continue;
    } catch (const ExpressionError&) {
      ++too_large;
      continue;
    }
    for (int j = 0; j < 6; ++j) {
      const Values at{values[0][maker.below(3)], values[1][maker.below(3)], values[2][maker.below(2)]};
      Arithmetic why = Arithmetic::fine;
      const auto value = expression->try_evaluate(at, &why);
      if (!value && why == Arithmetic::overflow) {
        ++too_large;
        continue;
      }
      std::optional<bool> expected;
      try {
        expected = evaluated(tree, at).above != 0;
      } catch (const DividedByZero&) {
        ++without_value;
      } catch (const TooLarge&) {
        continue;
      }
      ASSERT_EQ(value.has_value(), expected.has_value())
          << python << " became " << text << " at " << at[0] << " " << at[1] << " " << at[2];
      ASSERT_TRUE(!expected || (*value != 0) == *expected)
          << python << " became " << text << " at " << at[0] << " " << at[1] << " " << at[2];
      ++checked;
    }
  }
  EXPECT_GT(checked, 15000);
  EXPECT_GT(without_value, 500);
  EXPECT_LT(too_large, 3000);
  std::printf("%d checked, %d of them divide by zero, %d too large\n", checked, without_value, too_large);
}

}  // namespace
}  // namespace pascaline
