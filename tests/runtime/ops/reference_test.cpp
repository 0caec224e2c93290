#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/tuner/kernels/naive_reference.hpp"

namespace pascaline::testing {
namespace {

using Values = std::vector<double>;

Problem problem(const std::string& kernel, std::vector<std::pair<std::string, std::int64_t>> dimensions) {
  return {kernel, std::move(dimensions), {}};
}

void expect_near(const Values& actual, const Values& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-6) << "element " << i;
  }
}

// A feed-forward block whose x is 1 in one column and 0 in another, with two values between: the first of them is 127
// steps of the integers that both are rounded to, the second half of `half_steps`; they are multiplied by 127 and 5.
// The other column makes the scales of q8_0 numbers that are exact.
struct FeedForwardOfTwo {
  double half_steps;
  Problem problem{"mlp",
                  {{"M", 1}, {"HIDDEN", 2}, {"INTERMEDIATE", 2}, {"EPSILON", 1000}},
                  {{"STORAGE", ElementType::float32}, {"WEIGHT", ElementType::q8_0}, {"DOWN", ElementType::q8_0}}};
  std::vector<Values> inputs{{1, 0}, {1, 1}, {1, 127, 254, 254, 1, 127, half_steps, 127}, {127, 5, 0, 127}};

  [[nodiscard]] Values results() const { return reference_results(problem, inputs)[0]; }
  [[nodiscard]] bool accepts(double off) const {
    Values wrong = results();
    wrong[0] += off;
    return reference_accepts(problem, inputs, wrong);
  }
};

TEST(ReferenceTest, WhatMayBeRoundedTheOtherWayIsSlack) {
  const double step = FeedForwardOfTwo{22}.results()[0] - FeedForwardOfTwo{20}.results()[0];
  EXPECT_GT(step, 5);
  const FeedForwardOfTwo between{21};
  EXPECT_TRUE(between.accepts(step));
  EXPECT_TRUE(between.accepts(-step));
  EXPECT_FALSE(between.accepts(2 * step));
  EXPECT_FALSE(FeedForwardOfTwo{20}.accepts(step)) << "no sum is that wrong";
  EXPECT_FALSE(FeedForwardOfTwo{22}.accepts(-step));
}

TEST(ReferenceTest, RmsnormScalesByTheRootMeanSquare) {
  const double rms = std::sqrt(12.5 + 1e-6);
  const auto plain = reference_results(
      problem("rmsnorm", {{"ROWS", 2}, {"WIDTH", 2}, {"RESIDUAL", 0}, {"BY_ROW", 0}, {"EPSILON", 1000}}),
      {{3, 4, 0, 0}, {1, 2}, {}});
  expect_near(plain[0], {3 / rms, 8 / rms, 0, 0});
  const auto summed = reference_results(
      problem("rmsnorm", {{"ROWS", 1}, {"WIDTH", 2}, {"RESIDUAL", 1}, {"BY_ROW", 0}, {"EPSILON", 1000}}),
      {{1, 5}, {1, 2}, {2, -1}});
  expect_near(summed[0], {3 / rms, 8 / rms});
  expect_near(summed[2], {3, 4});
  Values row(32);  // zeros but for its first columns
  Values weight(32, 1);
  Values integers(32);
  row[0] = 3;
  row[1] = 4;
  weight[1] = 2;
  integers[0] = 127 * 3.0 / 8;
  integers[1] = 127;
  const auto rounded =
      reference_results({"rmsnorm",
                         {{"ROWS", 1}, {"WIDTH", 32}, {"RESIDUAL", 0}, {"BY_ROW", 1}, {"EPSILON", 1000}},
                         {{"OUTPUT", ElementType::int8}}},
                        {row, weight, {}});
  expect_near(rounded[0], integers);
  expect_near(rounded[1], {8 / std::sqrt(25.0 / 32 + 1e-6) / 127});
  const double large = std::sqrt(12.5 + 0.5);
  const auto damped = reference_results(
      problem("rmsnorm", {{"ROWS", 1}, {"WIDTH", 2}, {"RESIDUAL", 0}, {"BY_ROW", 0}, {"EPSILON", 500'000'000}}),
      {{3, 4}, {1, 2}, {}});
  expect_near(damped[0], {3 / large, 8 / large});
}

TEST(ReferenceTest, LayernormUsesTheBiasedVariance) {
  const double deviation = std::sqrt(4 + 1e-6);
  const auto plain =
      reference_results(problem("layernorm", {{"ROWS", 1}, {"WIDTH", 2}, {"RESIDUAL", 0}, {"BY_ROW", 0}}),
                        {{1, 5}, {1, 3}, {10, 20}, {}});
  expect_near(plain[0], {10 - 2 / deviation, 20 + 6 / deviation});
  const auto summed =
      reference_results(problem("layernorm", {{"ROWS", 1}, {"WIDTH", 2}, {"RESIDUAL", 1}, {"BY_ROW", 0}}),
                        {{0, 1}, {1, 3}, {10, 20}, {1, 4}});
  expect_near(summed[0], plain[0]);
  expect_near(summed[2], {1, 5});
}

TEST(ReferenceTest, SoftmaxSumsToOne) {
  const auto y = reference_results(problem("softmax", {{"ROWS", 2}, {"WIDTH", 2}}), {{0, std::log(3.0), 2000, 2000}});
  expect_near(y[0], {0.25, 0.75, 0.5, 0.5});
}

TEST(ReferenceTest, ElementwiseFormulas) {
  const Values a{1, -2};
  const Values b{2, 3};
  const std::vector<Values> expected{{1, -2},
                                     {3, 1},
                                     {1.4621171572600098, -0.7152175202620571},
                                     {0.8411919906082768, -0.04540230591222354},
                                     {0.8413447460685429, -0.04550026389635842}};
  for (std::size_t operation = 0; operation < expected.size(); ++operation) {
    const auto y = reference_results(
        problem("elementwise", {{"COUNT", 2}, {"OPERATION", static_cast<std::int64_t>(operation)}}), {a, b});
    expect_near(y[0], expected[operation]);
  }
}

TEST(ReferenceTest, Transpose) {
  const auto y = reference_results(problem("transpose", {{"ROWS", 2}, {"COLUMNS", 3}}), {{1, 2, 3, 4, 5, 6}});
  expect_near(y[0], {1, 4, 2, 5, 3, 6});
}

TEST(ReferenceTest, GatherGivesZerosForWhatIsNoRow) {
  const auto y = reference_results(problem("gather", {{"TOKENS", 4}, {"WIDTH", 2}, {"VOCABULARY", 2}}),
                                   {{1, 2, 3, 4}, {1, -1, 2, 0}});
  expect_near(y[0], {3, 4, 0, 0, 0, 0, 1, 2});
}

TEST(ReferenceTest, SampleCountsAndStepsOn) {
  const Problem of = problem("sample", {{"VOCABULARY", 3}});
  // Settings: temperature, top_p, repetition, presence, min_p.
  const auto greedy = reference_results(of, {{1, 3, 2}, {0, 1, 2, 0, 0}, {0}, {7, 41}, {0, 1, 0}});
  EXPECT_EQ(greedy, (std::vector<Values>{{7, 42}, {0, 1, 1}, {2}, {1}}));
  const auto drawn = reference_results(of, {{0, 0, -100}, {1, 0.25, 1, 0, 0}, {0}, {7, 0}, {0, 0, 0}});
  EXPECT_EQ(drawn, (std::vector<Values>{{7, 1}, {1, 0, 0}, {0}, {1}}));
}

TEST(ReferenceTest, AdvanceAddsOne) {
  EXPECT_EQ(reference_results(problem("advance", {}), {{1}, {-1}, {4, 5, 6}}),
            (std::vector<Values>{{2}, {0}, {5, 6, 7}}));
}

// The grid holds 10·row + column at its corners, so that the patch at (i, j) of 4 x 4 gets (10·i + j) / 3.
TEST(ReferenceTest, PositionsComeInMergeBlocks) {
  const auto y = reference_results(
      problem("position_embedding", {{"GRID_H", 4}, {"GRID_W", 4}, {"WIDTH", 1}, {"SIDE", 2}, {"MERGE", 2}}),
      {Values(16, 100.0), {0, 1, 10, 11}});
  Values expected;
  for (const int place : {0, 1, 10, 11, 2, 3, 12, 13, 20, 21, 30, 31, 22, 23, 32, 33}) {
    expected.push_back(100.0 + place / 3.0);
  }
  expect_near(y[0], expected);
}

TEST(ReferenceTest, OneRowOfPatchesLiesAtTheTop) {
  const auto y = reference_results(
      problem("position_embedding", {{"GRID_H", 1}, {"GRID_W", 3}, {"WIDTH", 1}, {"SIDE", 2}, {"MERGE", 1}}),
      {{0, 0, 0}, {0, 1, 10, 11}});
  expect_near(y[0], {0, 0.5, 1});
}

/// One token with a query, a key and a value head of 128, its three positions 0, 1 and 2.
class QkNormRopeTest : public ::testing::Test {
 protected:
  std::vector<Values> inputs_{Values(384), Values(128, 1.0), Values(128, 2.0), Values(192), Values(192), {0, 1, 2},
                              {1},         Values(256, 7.0), Values(256, 8.0), {},          {}};
  double norm_ = 0;
  std::int64_t is_normed_ = 1;
  std::vector<std::pair<std::string, ElementType>> types_;

  void SetUp() override {
    double squares = 0;
    for (std::size_t i = 0; i < 128; ++i) {
      const double value = static_cast<double>(i) - 60;
      squares += value * value;
      inputs_[0][i] = inputs_[0][128 + i] = inputs_[0][256 + i] = value;
    }
    norm_ = 1.0 / std::sqrt(squares / 128 + 1e-6);
  }
  [[nodiscard]] std::vector<Values> run() const {
    return reference_results({"qk_norm_rope",
                              {{"TOKENS", 1},
                               {"HEADS", 1},
                               {"KV_HEADS", 1},
                               {"HEAD_DIM", 128},
                               {"POSITIONS", 3},
                               {"CACHE_ROWS", 2},
                               {"SECTION_H", 20},
                               {"SECTION_W", 20},
                               {"QKV_STRIDE", 384},
                               {"NORM", is_normed_},
                               {"EPSILON", 1000},
                               {"PARTS", 0}},
                              types_},
                             inputs_);
  }
};

// Cosines that name their row show which position a slot turns by: T H W repeated for 60 slots, then T.
TEST_F(QkNormRopeTest, SlotsInterleaveTheAxes) {
  for (std::size_t i = 0; i < 192; ++i) {
    inputs_[3][i] = 1.0 + static_cast<double>(i / 64);
  }
  const Values q = run()[4];
  for (std::size_t i = 0; i < 128; ++i) {
    const std::size_t slot = i % 64;
    const double axis = slot < 60 ? static_cast<double>(slot % 3) : 0;
    EXPECT_NEAR(q[i], (static_cast<double>(i) - 60) * norm_ * (1 + axis), 1e-9) << "element " << i;
  }
}

TEST_F(QkNormRopeTest, HalvesOfAHeadArePairs) {
  inputs_[4].assign(192, 1.0);  // a quarter turn
  const auto outputs = run();
  for (std::size_t j = 0; j < 64; ++j) {
    EXPECT_NEAR(outputs[4][j], -(static_cast<double>(j) + 4) * norm_, 1e-9);
    EXPECT_NEAR(outputs[4][j + 64], (static_cast<double>(j) - 60) * norm_, 1e-9);
    EXPECT_NEAR(outputs[0][128 + j], 2 * outputs[4][j], 1e-9) << "keys have a weight of their own";
    EXPECT_EQ(outputs[1][128 + j], static_cast<double>(j) - 60) << "values are copied";
    EXPECT_EQ(outputs[0][j], 7.0) << "other rows of the cache stay";
    EXPECT_EQ(outputs[1][j], 8.0) << "other rows of the cache stay";
  }
}

TEST_F(QkNormRopeTest, HeadsWithoutANormOnlyTurn) {
  is_normed_ = 0;
  inputs_[1].clear();
  inputs_[2].clear();
  inputs_[4].assign(192, 1.0);
  const auto outputs = run();
  for (std::size_t j = 0; j < 64; ++j) {
    EXPECT_EQ(outputs[4][j], -(static_cast<double>(j) + 4));
    EXPECT_EQ(outputs[4][j + 64], static_cast<double>(j) - 60);
    EXPECT_EQ(outputs[0][128 + j], outputs[4][j]) << "keys as queries";
  }
}

TEST_F(QkNormRopeTest, SlotsOutsideOfTheCacheAreSkipped) {
  for (const double slot : {-1.0, 2.0}) {
    inputs_[6] = {slot};
    const auto outputs = run();
    EXPECT_EQ(outputs[0], Values(256, 7.0));
    EXPECT_EQ(outputs[1], Values(256, 8.0));
  }
}

TEST_F(QkNormRopeTest, HeadsOfAnInt8CacheAreDividedByTheirScales) {
  inputs_[3].assign(192, 1.0);
  inputs_[9] = inputs_[10] = {5, 6};
  types_ = {{"CACHE", ElementType::int8}};
  const auto outputs = run();
  EXPECT_EQ(outputs[3], (Values{5, 67.0 / 127})) << "values go from -60 to 67";
  EXPECT_EQ(outputs[2][0], 5) << "other rows of the cache stay";
  const auto [least, largest] = std::minmax_element(outputs[0].begin() + 128, outputs[0].end());
  EXPECT_DOUBLE_EQ(std::max(-*least, *largest), 127);
  EXPECT_NEAR(outputs[1][128], -60 * 127.0 / 67, 1e-9) << "nothing is rounded";
  EXPECT_EQ(outputs[1][0], 8.0);
}

// Heads of 8: the first two pairs turn by the row, the others by the column; values stay.
TEST(ReferenceTest, VisionTurnsByRowAndColumn) {
  Values qkv(24);
  for (std::size_t i = 0; i < 24; ++i) {
    qkv[i] = static_cast<double>(i % 8) + 1;
  }
  const auto y = reference_results(
      problem("rope_vision", {{"PATCHES", 1}, {"HEADS", 1}, {"HEAD_DIM", 8}, {"POSITIONS", 2}, {"QKV_STRIDE", 24}}),
      {qkv, {2, 3, 5, 7}, {0, 0, 1, 1}, {0, 1}});
  const Values head{2, 4, 9, 12, 25 - 6, 30 + 5, 49 - 8, 56 + 7};
  Values expected = head;
  expected.insert(expected.end(), head.begin(), head.end());
  expected.insert(expected.end(), {1, 2, 3, 4, 5, 6, 7, 8});
  expect_near(y[0], expected);
}

}  // namespace
}  // namespace pascaline::testing
