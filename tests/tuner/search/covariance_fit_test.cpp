#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <random>

#include "tests/tuner/search/dense_process.hpp"
#include "tuner/search/gaussian_process.hpp"

namespace pascaline::testing {
namespace {

/// Forty values of a function of rows drawn at chance, less their mean and by their deviation, as a fit wants them.
struct FitSample {
  FitSample(const std::vector<CoordinateKind>& kinds, const std::function<double(const std::vector<float>&)>& function,
            double noise = 0)
      : rows(kinds.size()), covariance(first_covariance(kinds)) {
    std::mt19937_64 random(7);
    const auto number = [&] { return static_cast<double>(random() >> 11U) * 0x1p-53; };
    double mean = 0;
    for (int i = 0; i < 40; ++i) {
      std::vector<float> row;
      for (const CoordinateKind kind : kinds) {
        row.push_back(kind == CoordinateKind::category ? static_cast<float>(random() % 3)
                                                       : static_cast<float>(number()));
      }
      rows.add(row);
      values.push_back(function(row) + noise * (number() - 0.5));
      mean += values.back() / 40;
      each.push_back(std::move(row));
    }
    double squares = 0;
    for (double& value : values) {
      value -= mean;
      squares += value * value;
    }
    for (double& value : values) {
      value /= std::sqrt(squares / 40);
    }
  }
  [[nodiscard]] double log_likelihood() const { return DenseProcess(covariance, each, values).log_likelihood(); }
  void fit(int steps = 40) { fit_covariance(covariance, rows, values, steps); }

  Rows rows;
  std::vector<std::vector<float>> each;
  std::vector<double> values;
  Covariance covariance;
};

constexpr auto kOrdered = CoordinateKind::ordered;
constexpr auto kCategory = CoordinateKind::category;
constexpr auto kLinear = CoordinateKind::linear;

TEST(CovarianceFitTest, ValuesGetMoreLikely) {
  FitSample sample({kOrdered, kCategory, kOrdered, kLinear}, [](const std::vector<float>& row) {
    return std::sin(6 * static_cast<double>(row[0])) + (row[1] == 1 ? 2 : 0) + 3 * static_cast<double>(row[3]);
  });
  const double before = sample.log_likelihood();
  sample.fit();
  const double after = sample.log_likelihood();
  std::printf("log likelihood %.1f before, %.1f after\n", before, after);
  EXPECT_GT(after, before + 10);
  for (const double weight : sample.covariance.weights) {
    EXPECT_TRUE(std::isfinite(weight) && weight > 0);
  }
}

// Downhill along every gradient, or steps would not help: each more of them is at least as good.
TEST(CovarianceFitTest, MoreStepsAreNoWorse) {
  double last = -1e9;
  for (const int steps : {1, 5, 20, 60}) {
    FitSample sample({kOrdered, kOrdered},
                     [](const std::vector<float>& row) { return std::cos(8 * static_cast<double>(row[0])); });
    sample.fit(steps);
    EXPECT_GE(sample.log_likelihood(), last - 0.5) << steps;
    last = sample.log_likelihood();
  }
}

TEST(CovarianceFitTest, IrrelevantCoordinatesAreFoundOut) {
  FitSample ordered({kOrdered, kOrdered, kOrdered},
                    [](const std::vector<float>& row) { return std::sin(7 * static_cast<double>(row[1])); });
  ordered.fit();
  const std::vector<double>& weights = ordered.covariance.weights;
  std::printf("weights %.3f %.3f %.3f\n", weights[0], weights[1], weights[2]);
  EXPECT_LT(weights[0], 0.1 * weights[1]);
  EXPECT_LT(weights[2], 0.1 * weights[1]);

  FitSample category({kCategory, kOrdered}, [](const std::vector<float>& row) { return row[0] == 2 ? 1.0 : 0.0; });
  category.fit();
  EXPECT_LT(category.covariance.weights[1], 0.1 * category.covariance.weights[0]);

  FitSample linear({kLinear, kLinear}, [](const std::vector<float>& row) { return 2 * static_cast<double>(row[1]); });
  linear.fit();
  EXPECT_LT(linear.covariance.weights[0], linear.covariance.weights[1]);
}

TEST(CovarianceFitTest, NoiseIsToldFromSignal) {
  const auto function = [](const std::vector<float>& row) { return 2 * static_cast<double>(row[0]); };
  FitSample clean({kOrdered}, function);
  FitSample noisy({kOrdered}, function, 2);
  clean.fit();
  noisy.fit();
  std::printf("noise %.5f of clean values, %.5f of noisy ones\n", clean.covariance.noise, noisy.covariance.noise);
  EXPECT_LT(clean.covariance.noise, 0.01);
  EXPECT_GT(noisy.covariance.noise, 5 * clean.covariance.noise);
}

TEST(CovarianceFitTest, NothingToLearnFrom) {
  Covariance covariance = first_covariance({kOrdered, kLinear});
  EXPECT_EQ(covariance.weights.size(), 2U);
  Rows rows(2);
  std::vector<double> values;
  for (int i = 0; i < 5; ++i) {
    rows.add(std::vector<float>{0.5F, 0});
    values.push_back(0);
  }
  fit_covariance(covariance, rows, values, 20);
  for (const double weight : covariance.weights) {
    EXPECT_TRUE(std::isfinite(weight) && weight > 0);
  }
  EXPECT_TRUE(covariance.noise > 0 && covariance.noise <= 1);
  const Covariance before = covariance;
  fit_covariance(covariance, rows, values, 0);
  EXPECT_EQ(covariance.weights, before.weights) << "no step, no change";
}

}  // namespace
}  // namespace pascaline::testing
