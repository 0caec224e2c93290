#include "model/logit_divergence.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace pascaline::testing {
namespace {

using Row = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// With a and b the log-softmax of the rows of float64, NumPy 2.4 says:
//   kl = (np.exp(a) * (a - b)).sum(1)      0.23940136113977073, 0.0030362057827826514, 0.3089936757762706
//   kl.mean(), np.percentile(kl, 99)       0.18381041423294134, 0.30760182948354065
//   np.exp(-a[[0, 1], [2, 0]].mean())      7.184585044130006
//   np.exp(-b[[0, 1], [2, 0]].mean())      12.993350774640312
TEST(LogitDivergenceTest, AgreesWithNumPy) {
  LogitDivergence divergence;
  divergence.add(Row{1, 2, 3}, Row{1, 2.5F, 2}, 2);
  divergence.add(Row{0.5F, -1, 4}, Row{0, -1, 4}, 0);
  divergence.add(Row{0, 0, 0}, Row{1, 0, -1});
  EXPECT_EQ(divergence.tokens(), 3);
  EXPECT_EQ(divergence.predicted(), 2);
  EXPECT_NEAR(divergence.mean(), 0.18381041423294134, 1e-14);
  EXPECT_NEAR(divergence.quantile(0.99), 0.30760182948354065, 1e-14);
  EXPECT_NEAR(divergence.quantile(0), 0.0030362057827826514, 1e-14);
  EXPECT_NEAR(divergence.quantile(0.5), 0.23940136113977073, 1e-14);
  EXPECT_NEAR(divergence.quantile(1), 0.3089936757762706, 1e-14);
  EXPECT_DOUBLE_EQ(divergence.top1_agreement(), 2.0 / 3) << "of the three equal logits the first counts";
  EXPECT_NEAR(divergence.reference_perplexity(), 7.184585044130006, 1e-12);
  EXPECT_NEAR(divergence.perplexity(), 12.993350774640312, 1e-12);
}

TEST(LogitDivergenceTest, EqualLogitsDivergeByNothing) {
  Row row;
  for (int i = 0; i < 1000; ++i) {
    row.push_back(static_cast<float>(10 * std::sin(i)));
  }
  LogitDivergence divergence;
  divergence.add(row, row, 7);
  EXPECT_EQ(divergence.mean(), 0);
  EXPECT_EQ(divergence.quantile(0.99), 0);
  EXPECT_EQ(divergence.top1_agreement(), 1);
  EXPECT_EQ(divergence.perplexity(), divergence.reference_perplexity());
}

// Adding a constant to logits changes no probability.
TEST(LogitDivergenceTest, AConstantDoesNotMatter) {
  LogitDivergence divergence;
  divergence.add(Row{1, 2, 3}, Row{1001, 1002, 1003});
  EXPECT_GE(divergence.mean(), 0);
  EXPECT_LT(divergence.mean(), 1e-12);
}

TEST(LogitDivergenceTest, LargeLogitsDoNotOverflow) {
  LogitDivergence far;
  far.add(Row{1000, 0}, Row{0, 1000}, 0);
  EXPECT_NEAR(far.mean(), 1000, 1e-9) << "1 · (0 - -1000)";
  EXPECT_EQ(far.reference_perplexity(), 1);
  LogitDivergence half;
  half.add(Row{0, -1000}, Row{0, 0});
  EXPECT_NEAR(half.mean(), std::log(2), 1e-15) << "1 · (0 - log(1/2))";
  LogitDivergence utmost;
  constexpr float kLargest = std::numeric_limits<float>::max();
  utmost.add(Row{kLargest, -kLargest}, Row{-kLargest, kLargest});
  EXPECT_TRUE(std::isfinite(utmost.mean()));
}

TEST(LogitDivergenceTest, NothingWasAdded) {
  const LogitDivergence none;
  EXPECT_EQ(none.tokens(), 0);
  for (const double value : {none.mean(), none.quantile(0.99), none.top1_agreement(), none.perplexity()}) {
    EXPECT_TRUE(std::isnan(value));
  }
}

TEST(LogitDivergenceTest, LogSumExp) {
  EXPECT_NEAR(log_sum_exp(Row{0, 0}), std::log(2), 1e-15);
  EXPECT_DOUBLE_EQ(log_sum_exp(Row{-5}), -5);
  EXPECT_EQ(log_sum_exp({}), -std::numeric_limits<double>::infinity());
}

TEST(LogitDivergenceTest, WhatIsNotFiniteIsNamedWithItsToken) {
  EXPECT_NO_THROW(require_finite(Row{0, 1e38F}, "the model", 1));
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
    try {
      require_finite(Row{0, 1, wrong, 3}, "the float32 model", 17);
      FAIL() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("the float32 model: after token 17, logit 2 is "), 0) << error.what();
    }
  }
}

}  // namespace
}  // namespace pascaline::testing
