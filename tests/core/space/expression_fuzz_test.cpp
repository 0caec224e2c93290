#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "core/space/expression.hpp"
#include "tests/core/space/expression_tree.hpp"
#include "tests/core/util/mutator.hpp"

namespace pascaline {
namespace {

using testing::ExpressionTree;
using testing::fuzz_seed;
using testing::fuzz_time;
using testing::Mutator;
using Clock = std::chrono::steady_clock;

const std::vector<std::string> kNames{"A", "B", "LONG_name_3", "_d", "zero"};

Symbols symbols() {
  Symbols symbols;
  for (const std::string& name : kNames) {
    symbols.add(name);
  }
  symbols.forbid("STORAGE", "it is a type");
  symbols.add_size_of("STORAGE");
  return symbols;
}

std::vector<std::int64_t> random_slots(std::mt19937_64& random) {
  std::vector<std::int64_t> slots(kNames.size() + 1);
  for (std::int64_t& slot : slots) {
    slot = static_cast<std::int64_t>(random()) >> (random() % 64);
  }
  slots[4] = 0;
  return slots;
}

TEST(ExpressionFuzzTest, AgreesWithATreeEvaluatedInWiderNumbers) {
  std::mt19937_64 random(fuzz_seed());
  const Symbols known = symbols();
  const auto end = Clock::now() + fuzz_time(3);
  int with_value = 0;
  int without = 0;
  while (Clock::now() < end || with_value < 100) {
    const ExpressionTree tree = ExpressionTree::random(random, kNames, static_cast<int>(random() % 6));
    const std::string text = tree.text(random);
    if (text.size() > 4096) {
      continue;
    }
    const Expression expression = Expression::parse(text, known);
    for (int i = 0; i < 4; ++i) {
      const std::vector<std::int64_t> slots = random_slots(random);
      const auto expected = tree.value(slots);
      Arithmetic why = Arithmetic::fine;
      ASSERT_EQ(expression.try_evaluate(slots, &why), expected) << text;
      ASSERT_EQ(why == Arithmetic::fine, expected.has_value()) << text;
      ++(expected ? with_value : without);
    }
  }
  std::printf("%d values, %d without one\n", with_value, without);
  EXPECT_GT(without, 0);
}

constexpr std::array<std::string_view, 36> kExpressionWords{
    "A",         "B",        "zero",  "STORAGE", "sizeof(STORAGE)",
    "sizeof",    "(",        ")",     "?",       ":",
    ",",         "min(",     "max(",  "abs(",    "ceil_div(",
    "round_up(", "is_pow2(", "log2(", "&&",      "||",
    "<<",        ">>",       "<=",    "==",      "!=",
    "+",         "-",        "*",     "/",       "%",
    "!",         "~",        "&",     "|",       "^",
    " "};

TEST(ExpressionFuzzTest, DamagedTextIsRefusedOrHasAValueOrNone) {
  std::mt19937_64 random(fuzz_seed() + 1);
  Mutator mutator(fuzz_seed() + 1, kExpressionWords);
  const Symbols known = symbols();
  const auto end = Clock::now() + fuzz_time(3);
  int accepted = 0;
  int refused = 0;
  while (Clock::now() < end || refused < 100) {
    const ExpressionTree tree = ExpressionTree::random(random, kNames, static_cast<int>(random() % 5));
    const std::string text = mutator.damaged(tree.text(random));
    const auto start = Clock::now();
    try {
      const Expression expression = Expression::parse(text, known);
      (void)expression.try_evaluate(random_slots(random));
      ++accepted;
    } catch (const ExpressionError& error) {
      ASSERT_GE(error.column(), 1);
      ASSERT_LE(error.column(), static_cast<int>(text.size()) + 1) << text;
      ++refused;
    }
    ASSERT_LT(Clock::now() - start, std::chrono::seconds(5)) << text;
  }
  std::printf("%d accepted, %d refused\n", accepted, refused);
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace pascaline
