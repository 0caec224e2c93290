#include "tuner/search/gaussian_process.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/tuner/search/dense_process.hpp"

namespace pascaline::testing {
namespace {

/// Rows with a coordinate of every kind and two ordered ones, and a covariance of uneven weights.
class PosteriorTest : public ::testing::Test {
 protected:
  std::mt19937_64 random_{1};
  Covariance covariance_;
  Rows candidates_{4};
  std::vector<std::vector<float>> rows_;
  std::vector<double> values_;

  PosteriorTest() {
    covariance_.kinds = {CoordinateKind::ordered, CoordinateKind::category, CoordinateKind::ordered,
                         CoordinateKind::linear};
    covariance_.weights = {2.0, 0.7, 0.3, 0.4};
    covariance_.noise = 0.02;
    for (int i = 0; i < 30; ++i) {
      candidates_.add(row());
    }
    for (int i = 0; i < 15; ++i) {
      rows_.push_back(i % 5 == 4 ? rows_[static_cast<std::size_t>(i - 2)] : row());  // some are measured twice
      values_.push_back(7 + number() + std::sin(5 * static_cast<double>(rows_.back()[0])));
    }
  }
  double number() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  std::vector<float> row() {
    return {static_cast<float>(number()), static_cast<float>(random_() % 3), static_cast<float>(number()),
            static_cast<float>(number() - 0.5)};
  }
  void observe(Posterior& posterior, std::size_t from, std::size_t to) const {
    for (std::size_t i = from; i < to; ++i) {
      posterior.observe(rows_[i], values_[i]);
    }
  }
  static void expect_same(const Posterior& a, const Posterior& b, double within) {
    std::vector<double> expected_a;
    std::vector<double> expected_b;
    std::vector<double> deviations_a;
    std::vector<double> deviations_b;
    a.predict(expected_a, deviations_a);
    b.predict(expected_b, deviations_b);
    ASSERT_EQ(expected_a.size(), expected_b.size());
    for (std::size_t i = 0; i < expected_a.size(); ++i) {
      EXPECT_NEAR(expected_a[i], expected_b[i], within) << i;
      EXPECT_NEAR(deviations_a[i], deviations_b[i], within) << i;
    }
    EXPECT_NEAR(a.mean(), b.mean(), within);
    EXPECT_NEAR(a.deviation(), b.deviation(), within);
  }
};

TEST_F(PosteriorTest, AsTheDenseFormulasSay) {
  Posterior posterior(covariance_, candidates_);
  for (std::size_t count = 1; count <= rows_.size(); ++count) {
    observe(posterior, count - 1, count);
    ASSERT_EQ(posterior.observations(), count);
    const DenseProcess dense(covariance_, {rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(count)},
                             {values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(count)});
    EXPECT_NEAR(posterior.mean(), dense.mean(), 1e-9);
    EXPECT_NEAR(posterior.deviation(), dense.deviation(), 1e-5);
    std::vector<double> expected;
    std::vector<double> deviations;
    posterior.predict(expected, deviations);
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      EXPECT_NEAR(expected[i], dense.expected(candidates_[i]), 2e-4) << count << " observations";
      EXPECT_NEAR(posterior.expected(candidates_[i]), dense.expected(candidates_[i]), 1e-7);
      EXPECT_NEAR(deviations[i], dense.deviation_at(candidates_[i]), 2e-4) << count << " observations";
    }
  }
}

TEST_F(PosteriorTest, BeforeAnyObservation) {
  const Posterior posterior(covariance_, candidates_);
  EXPECT_EQ(posterior.mean(), 0);
  std::vector<double> expected;
  std::vector<double> deviations;
  posterior.predict(expected, deviations);
  ASSERT_EQ(expected.size(), candidates_.size());
  EXPECT_EQ(expected[0], 0);
  EXPECT_EQ(posterior.expected(candidates_[0]), 0);
}

TEST_F(PosteriorTest, RevisedIsAsIfObservedSo) {
  Posterior plain(covariance_, candidates_);
  observe(plain, 0, 15);
  for (const std::size_t revised : {0U, 7U, 14U}) {
    Posterior posterior(covariance_, candidates_);
    for (std::size_t i = 0; i < 15; ++i) {
      posterior.observe(rows_[i], i == revised ? values_[i] + 3 : values_[i]);
    }
    EXPECT_NEAR(posterior.value(revised), values_[revised] + 3, 1e-12);
    posterior.revise(revised, values_[revised]);
    EXPECT_NEAR(posterior.value(revised), values_[revised], 1e-12);
    EXPECT_EQ(posterior.observations(), 15U);
    EXPECT_NEAR(posterior.mean(), plain.mean(), 1e-9);
    EXPECT_NEAR(posterior.deviation(), plain.deviation(), 1e-9);
    expect_same(posterior, plain, 1e-4);
    EXPECT_NEAR(posterior.expected(candidates_[1]), plain.expected(candidates_[1]), 1e-9);
  }
}

TEST_F(PosteriorTest, RevisingManyTimesDoesNotDrift) {
  Posterior posterior(covariance_, candidates_);
  Posterior plain(covariance_, candidates_);
  observe(posterior, 0, 12);
  observe(plain, 0, 12);
  for (int i = 0; i < 500; ++i) {
    posterior.revise(4, i % 7);
    posterior.revise(11, -i % 5);
  }
  posterior.revise(4, values_[4]);
  posterior.revise(11, values_[11]);
  expect_same(posterior, plain, 1e-4);
}

TEST_F(PosteriorTest, CandidateAddedLaterIsLikeOneOfTheStart) {
  Posterior whole(covariance_, candidates_);
  Rows some(4);
  for (std::size_t i = 0; i < 10; ++i) {
    some.add(candidates_[i]);
  }
  Posterior grown(covariance_, some);
  for (std::size_t i = 10; i < candidates_.size(); ++i) {
    observe(grown, (i - 10) / 2, (i - 9) / 2);
    grown.add_candidate(candidates_[i]);
  }
  observe(grown, 10, 12);
  observe(whole, 0, 12);
  EXPECT_EQ(grown.candidates(), candidates_.size());
  expect_same(grown, whole, 1e-4);
  grown.revise(6, -1);
  whole.revise(6, -1);
  expect_same(grown, whole, 1e-4);
}

TEST_F(PosteriorTest, WithoutNoiseItPassesThroughWhatItSaw) {
  covariance_.noise = 1e-6;
  Posterior posterior(covariance_, candidates_);
  for (std::size_t i = 0; i < 8; ++i) {
    posterior.observe(candidates_[i], values_[i]);
  }
  std::vector<double> expected;
  std::vector<double> deviations;
  posterior.predict(expected, deviations);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(expected[i], values_[i], 0.01);
    EXPECT_LT(deviations[i], 0.02 * posterior.deviation());
  }
}

TEST_F(PosteriorTest, EqualValuesAndRowsThatRepeat) {
  covariance_.noise = 1e-6;
  Posterior posterior(covariance_, candidates_);
  for (int i = 0; i < 40; ++i) {
    posterior.observe(rows_[0], 3);
  }
  std::vector<double> expected;
  std::vector<double> deviations;
  posterior.predict(expected, deviations);
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    EXPECT_NEAR(expected[i], 3, 1e-3);
    EXPECT_TRUE(deviations[i] >= 0 && deviations[i] < 1e-2);
  }
}

TEST(RowsTest, GrowAndShrink) {
  Rows rows(2);
  rows.add()[1] = 5;
  rows.add(std::vector<float>{1, 2});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0][1], 5);
  rows.shrink(1);
  EXPECT_EQ(rows.size(), 1U);
  rows.shrink(7);
  EXPECT_EQ(rows.size(), 1U);
  EXPECT_EQ(Rows().size(), 0U);
}

}  // namespace
}  // namespace pascaline::testing
