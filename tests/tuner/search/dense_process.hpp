#pragma once

#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "tuner/search/gaussian_process.hpp"

namespace pascaline::testing {

/// A Gaussian process as the textbook writes it, with the inverse of the whole matrix: for a few rows.
class DenseProcess {
 public:
  DenseProcess(Covariance covariance, std::vector<std::vector<float>> rows, const std::vector<double>& values)
      : covariance_(std::move(covariance)), rows_(std::move(rows)) {
    const std::size_t n = rows_.size();
    for (const double value : values) {
      mean_ += value / static_cast<double>(n);
    }
    std::vector<std::vector<double>> matrix(n, std::vector<double>(n));
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        matrix[i][j] = between(rows_[i], rows_[j]) + (i == j ? covariance_.noise : 0);
      }
    }
    invert(std::move(matrix));
    for (std::size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < n; ++j) {
        sum += inverse_[i][j] * (values[j] - mean_);
      }
      weights_.push_back(sum);
      squares_ += sum * (values[i] - mean_);
    }
  }

  [[nodiscard]] double mean() const { return mean_; }
  [[nodiscard]] double deviation() const { return std::sqrt(squares_ / static_cast<double>(rows_.size()) + 1e-12); }
  [[nodiscard]] double expected(std::span<const float> row) const {
    double sum = mean_;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      sum += weights_[i] * between(rows_[i], row);
    }
    return sum;
  }
  [[nodiscard]] double deviation_at(std::span<const float> row) const {
    double variance = between(row, row);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      for (std::size_t j = 0; j < rows_.size(); ++j) {
        variance -= between(rows_[i], row) * inverse_[i][j] * between(rows_[j], row);
      }
    }
    return deviation() * std::sqrt(std::max(variance, 1e-9));
  }
  /// Logarithm of the values' likelihood at the scale that makes them most likely, up to a constant.
  [[nodiscard]] double log_likelihood() const {
    const double n = static_cast<double>(rows_.size());
    return -0.5 * n * std::log(squares_ / n) - 0.5 * log_determinant_;
  }

 private:
  [[nodiscard]] double between(std::span<const float> a, std::span<const float> b) const {
    double squared = 0;
    double products = 0;
    for (std::size_t q = 0; q < covariance_.kinds.size(); ++q) {
      const double one = static_cast<double>(a[q]);
      const double other = static_cast<double>(b[q]);
      if (covariance_.kinds[q] == CoordinateKind::linear) {
        products += covariance_.weights[q] * one * other;
      } else if (covariance_.kinds[q] == CoordinateKind::category) {
        squared += one == other ? 0 : 0.25 * covariance_.weights[q];
      } else {
        squared += covariance_.weights[q] * (one - other) * (one - other);
      }
    }
    const double distance = std::sqrt(squared);
    return (1 + std::sqrt(5.0) * distance + 5.0 / 3 * squared) * std::exp(-std::sqrt(5.0) * distance) + products;
  }

  // Gauss and Jordan; the matrix is positive, so no pivot is 0.
  void invert(std::vector<std::vector<double>> matrix) {
    const std::size_t n = matrix.size();
    inverse_.assign(n, std::vector<double>(n, 0));
    for (std::size_t i = 0; i < n; ++i) {
      inverse_[i][i] = 1;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double pivot = matrix[i][i];
      log_determinant_ += std::log(pivot);
      for (std::size_t k = 0; k < n; ++k) {
        matrix[i][k] /= pivot;
        inverse_[i][k] /= pivot;
      }
      for (std::size_t j = 0; j < n; ++j) {
        const double factor = matrix[j][i];
        for (std::size_t k = 0; j != i && k < n; ++k) {
          matrix[j][k] -= factor * matrix[i][k];
          inverse_[j][k] -= factor * inverse_[i][k];
        }
      }
    }
  }

  Covariance covariance_;
  std::vector<std::vector<float>> rows_;
  std::vector<std::vector<double>> inverse_;
  std::vector<double> weights_;
  double mean_ = 0;
  double squares_ = 0;
  double log_determinant_ = 0;
};

}  // namespace pascaline::testing
