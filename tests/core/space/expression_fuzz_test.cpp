#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "core/space/expression.hpp"
#include "tests/core/space/expression_tree.hpp"
#include "tests/core/util/fuzz_test.hpp"

namespace pascaline {
namespace {

using testing::ExpressionTree;
using testing::fuzz_seed;
using testing::Mutator;
using ExpressionFuzzTest = testing::FuzzTest;

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

TEST_F(ExpressionFuzzTest, AgreesWithATreeEvaluatedInWiderNumbers) {
  std::mt19937_64 random(fuzz_seed());
  const Symbols known = symbols();
  repeat(3, {.refused = 0, .accepted = 100}, [&] {  // those with a value count as accepted
    const ExpressionTree tree = ExpressionTree::random(random, kNames, static_cast<int>(random() % 6));
    const std::string text = tree.text(random);
    if (text.size() > 4096) {
      return;
    }
    const Expression expression = Expression::parse(text, known);
    for (int i = 0; i < 4; ++i) {
      const std::vector<std::int64_t> slots = random_slots(random);
      const auto expected = tree.value(slots);
      Arithmetic why = Arithmetic::fine;
      ASSERT_EQ(expression.try_evaluate(slots, &why), expected) << text;
      ASSERT_EQ(why == Arithmetic::fine, expected.has_value()) << text;
      ++(expected ? accepted_ : refused_);
    }
  });
  EXPECT_GT(refused_, 0);
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

TEST_F(ExpressionFuzzTest, DamagedTextIsRefusedOrHasAValueOrNone) {
  std::mt19937_64 random(fuzz_seed() + 1);
  Mutator mutator(fuzz_seed() + 1, kExpressionWords);
  const Symbols known = symbols();
  repeat(3, {.refused = 100}, [&] {
    const ExpressionTree tree = ExpressionTree::random(random, kNames, static_cast<int>(random() % 5));
    const std::string text = mutator.damaged(tree.text(random));
    const auto start = Clock::now();
    try {
      const Expression expression = Expression::parse(text, known);
      (void)expression.try_evaluate(random_slots(random));
      ++accepted_;
    } catch (const ExpressionError& error) {
      ASSERT_GE(error.column(), 1);
      ASSERT_LE(error.column(), static_cast<int>(text.size()) + 1) << text;
      ++refused_;
    }
    ASSERT_LT(Clock::now() - start, std::chrono::seconds(5)) << text;
  });
  EXPECT_GT(accepted_, 0);
}

}  // namespace
}  // namespace pascaline
