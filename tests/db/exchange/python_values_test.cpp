#include "db/exchange/python_values.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>

#include "db/exchange/python_syntax.hpp"
#include "tests/core/util/mutator.hpp"

namespace pascaline {
namespace {

std::string listed(const std::string& python) {
  std::string out;
  for (const Value& value : python_values(python)) {
    const bool text = std::holds_alternative<std::string>(value);
    const auto* flag = std::get_if<bool>(&value);
    out += (out.empty() ? "" : " ") + (text              ? "'" + std::get<std::string>(value) + "'"
                                       : flag != nullptr ? (*flag ? "True" : "False")
                                                         : to_text(value));
  }
  return out;
}

std::string values_refusal(const std::string& python) {
  try {
    return "gave " + listed(python);
  } catch (const PythonError& error) {
    return std::to_string(error.column()) + ": " + error.what();
  }
}

TEST(PythonValues, ListsAreWorkedOut) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"[1, 2, 4]", "1 2 4"},
      {"[1]", "1"},
      {" ( 16 , 32 , ) ", "16 32"},
      {"1, 2", "1 2"},
      {"[-1, +2, 0x10, 1.5, 1e2]", "-1 2 16 1.5 100.0"},
      {"[True, False]", "True False"},
      {"['a', \"b'c\", 'd\\n\\'']", "'a' 'b'c' 'd\n''"},
      {"range(4)", "0 1 2 3"},
      {"range(1, 8, 3)", "1 4 7"},
      {"range(5, 0, -2)", "5 3 1"},
      {"list(range(1, 4))", "1 2 3"},
      {"list(range(0,3)) + [16, 32]", "0 1 2 16 32"},
      {"[2**i for i in range(3, 8)]", "8 16 32 64 128"},
      {"[x for x in range(1,9) if x % 2 == 0]", "2 4 6 8"},
      {"[x*y for x in [1,2] for y in (3, 5) if x*y != 5 if y]", "3 6 10"},
      {"[i if i > 1 else -i for i in range(3)]", "0 -1 2"},
      {"list(16 * i for i in range(1, 3))", "16 32"},
      {"[7 // 2, -7 // 2, 7 // -2, -7 % 3, 7 % -3, 7 / 2, 2 ** -1, -2 ** 2]", "3 -4 -4 2 -2 3.5 0.5 -4"},
      {"[-7.5 // 2, -7.5 % 2]", "-4.0 0.5"},
      {"[0] * 2 + 2 * [1]", "0 0 1 1"},
      {"sorted([3, 1, 2])", "1 2 3"},
      {"[len([1, 2]), min(3, 1), max([4, 9]), sum([1, 2]), abs(-3), int(2.9), float(1)]", "2 1 9 3 3 2 1.0"},
      {"[1 if 2 in [1, 2] and not 3 in (1,) else 0, 1 < 2 < 3, 'a' == 'b', 0 or 5]", "1 True False 5"},
      {"[6 & 3, 6 | 1, 6 ^ 2]", "2 7 4"},
      {"[x[1] for x in [[1, 2], [3, 4]]]", "2 4"},
      {"[(-1) ** 5, (-1) ** 1000000000, 0 ** 0, 1 ** 9999999999]", "-1 1 1 1"},
  };
  for (const auto& [python, values] : cases) {
    EXPECT_EQ(values_refusal(python), "gave " + values) << python;
  }
}

TEST(PythonValues, WhatIsNoListOfValuesIsRefusedWithItsColumn) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"5", "1: expected a list of values"},
      {"[[1]]", "1: a list cannot be a parameter's value"},
      {"[1, x]", "5: unknown name 'x'"},
      {"[1, 2", "6: expected ']' before the end"},
      {"[1 2]", "4: expected ']' before '2'"},
      {"[1 / 0]", "4: division by zero"},
      {"[1 % 0]", "4: division by zero"},
      {"[2 ** 63]", "4: the number does not fit 64 bits"},
      {"[9223372036854775807 + 1]", "22: the number does not fit 64 bits"},
      {"[10.0 ** 400]", "7: the number is not finite"},
      {"['a' + 'b']", "6: expected a number, found a text"},
      {"['a' < 1]", "2: values of different kinds cannot be compared"},
      {"range(0, 10, 0)", "1: range needs a step that is not 0"},
      {"range(1.5)", "7: expected an integer"},
      {"range(100000)", "1: more than 65535 values"},
      {"open('/etc/passwd')",
       "1: the function 'open' is not known; known are list, tuple, sorted, len, min, max, sum, abs, "
       "int, float and range"},
      {"[x for x in 5]", "13: expected a list"},
      {"[x for 5 in [1]]", "8: expected the name of a variable"},
      {"[1][3]", "4: the index is outside of the list"},
      {"os.system('x')", "3: only functions can be called, by their names, and nothing has members here"},
      {"[0] * 'a'", "5: '*' cannot be used with a list here"},
      {"['\\x41']", "3: this escape in a text is not known"},
      {"min([])", "1: min needs a value"},
      {"[1, 2] for", "8: unexpected 'f'"},
  };
  for (const auto& [python, message] : cases) {
    EXPECT_EQ(values_refusal(python), message) << python;
  }
}

TEST(PythonValues, WorkIsBounded) {
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& python :
       {std::string("[0] * 9223372036854775807"), std::string("[[[0] * 60000] * 60000] * 60000"),
        std::string("[i for i in range(60000) for j in range(60000) if i < 0]"),
        std::string("[x for x in range(65535) if x in range(65535)]"), std::string(100000, '['),
        std::string("[") + std::string(3000, '-') + "1]", std::string("sorted(range(60000)) * 100"),
        std::string("[2 ** 9223372036854775807]"), std::string(2'000'000, ' ')}) {
    EXPECT_THROW((void)python_values(python), PythonError) << python.substr(0, 60);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

constexpr std::array<std::string_view, 24> kPythonWords{
    "for x in ", "range(", "if ",  " else ", "not ", " in ", "**",  "//",      "%",     "[",    "]", "(",
    ")",         "'",      "list", "x",      ",",    "0",    "1e9", "sorted(", " and ", " or ", "-", "[0] * "};

TEST(PythonValues, DamagedTextIsRefusedOrListed) {
  testing::Mutator mutator(testing::fuzz_seed() + 30, kPythonWords);
  const std::array<std::string, 3> seeds{"[2**i for i in range(3, 8)]", "list(range(1, 9)) + ['a', True, 0.5]",
                                         "[x for x in range(1,9) if x % 2 == 0 and not x in (3, 4)]"};
  const auto end = std::chrono::steady_clock::now() + testing::fuzz_time(8);
  int listed_ones = 0;
  while (std::chrono::steady_clock::now() < end || listed_ones < 20) {
    try {
      ASSERT_LE(python_values(mutator.damaged(seeds[mutator.below(seeds.size())])).size(), 65535U);
      ++listed_ones;
    } catch (const PythonError& error) {
      ASSERT_GE(error.column(), 1);
    }
  }
}

}  // namespace
}  // namespace pascaline
