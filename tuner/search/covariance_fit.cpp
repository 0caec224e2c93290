#include <algorithm>
#include <cmath>
#include <numeric>

#include "tuner/search/gaussian_process.hpp"

namespace pascaline {
namespace {

// Priors of the logarithms: of inverse lengths about 1 (lengths as long as the coordinates' range), of the noise a
// hundredth of the signal or less.
constexpr double kInverseLengthDeviation = 1.0;
constexpr double kNoiseMean = -5.0;
constexpr double kNoiseDeviation = 1.5;
constexpr double kLinearMean = -1.15;

using Matrix = std::vector<double>;  // n x n, lower triangle

bool cholesky(Matrix& a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    double* const row = &a[i * n];
    for (std::size_t j = 0; j <= i; ++j) {
      const double* const other = &a[j * n];
      double sum = row[j];
      for (std::size_t k = 0; k < j; ++k) {
        sum -= row[k] * other[k];
      }
      if (i != j) {
        row[j] = sum / other[j];
      } else if (sum > 1e-12) {
        row[i] = std::sqrt(sum);
      } else {
        return false;
      }
    }
  }
  return true;
}

// Of a lower triangular matrix; row c of the result is column c of the inverse.
Matrix inverse_columns(const Matrix& factor, std::size_t n) {
  Matrix inverse(n * n, 0);
  for (std::size_t c = 0; c < n; ++c) {
    double* const column = &inverse[c * n];
    column[c] = 1 / factor[c * n + c];
    for (std::size_t i = c + 1; i < n; ++i) {
      double sum = 0;
      for (std::size_t k = c; k < i; ++k) {
        sum -= factor[i * n + k] * column[k];
      }
      column[i] = sum / factor[i * n + i];
    }
  }
  return inverse;
}

// Logarithms of half the weights' squares and of the noise; linear weights likewise.
class Likelihood {
 public:
  Likelihood(const Covariance& covariance, const Rows& rows, std::span<const double> values)
      : kinds_(covariance.kinds), rows_(rows), values_(values), n_(rows.size()) {
    squares_.resize(kinds_.size() * n_ * (n_ + 1) / 2);
    std::size_t at = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        for (std::size_t q = 0; q < kinds_.size(); ++q) {
          squares_[at++] = term(kinds_[q], rows_[i][q], rows_[j][q]);
        }
      }
    }
  }

  /// Log posterior of the hyperparameters up to a constant; false if the covariance is not positive.
  [[nodiscard]] bool evaluate(const std::vector<double>& theta, double& log_posterior, std::vector<double>& gradient) {
    const std::size_t d = kinds_.size();
    std::vector<double> weights(d);
    for (std::size_t q = 0; q < d; ++q) {
      weights[q] = std::exp(2 * theta[q]);
    }
    const double noise = std::exp(theta[d]);
    Matrix factor(n_ * n_, 0);
    Matrix slopes(n_ * n_, 0);
    fill(weights, noise, factor, slopes);
    if (!cholesky(factor, n_)) {
      return false;
    }
    const Matrix inverse = inverse_columns(factor, n_);
    const std::vector<double> alpha = solve(inverse);
    double fit = 0;
    double log_determinant = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      fit += values_[i] * alpha[i];
      log_determinant += 2 * std::log(factor[i * n_ + i]);
    }
    // The common factor of the covariance is the one that fits best, held back by one observation's worth of 1.
    const double count = static_cast<double>(n_) + 1;
    const double scale = (fit + 1) / count;
    log_posterior = -0.5 * count * std::log(scale) - 0.5 * log_determinant;
    gradient.assign(d + 1, 0);
    add_gradient(weights, noise, inverse, alpha, scale, slopes, gradient);
    add_priors(theta, log_posterior, gradient);
    return true;
  }

 private:
  static double term(CoordinateKind kind, float a, float b) {
    if (kind == CoordinateKind::linear) {
      return static_cast<double>(a) * static_cast<double>(b);
    }
    const double apart = coordinate_difference(kind, a, b);
    return apart * apart;
  }

  void fill(const std::vector<double>& weights, double noise, Matrix& covariance, Matrix& slopes) const {
    const std::size_t d = kinds_.size();
    std::size_t at = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        double squared = 0;
        double products = 0;
        for (std::size_t q = 0; q < d; ++q) {
          (kinds_[q] == CoordinateKind::linear ? products : squared) += weights[q] * squares_[at + q];
        }
        at += d;
        const double r = std::sqrt(5 * squared);
        const double decay = std::exp(-r);
        covariance[i * n_ + j] = (1 + r + r * r / 3) * decay + products + (i == j ? noise : 0);
        slopes[i * n_ + j] = -5.0 / 6 * (1 + r) * decay;
      }
    }
  }

  [[nodiscard]] std::vector<double> solve(const Matrix& inverse) const {
    std::vector<double> half(n_, 0);
    std::vector<double> out(n_, 0);
    for (std::size_t k = 0; k < n_; ++k) {
      for (std::size_t i = k; i < n_; ++i) {
        half[i] += inverse[k * n_ + i] * values_[k];
      }
    }
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t k = i; k < n_; ++k) {
        out[i] += inverse[i * n_ + k] * half[k];
      }
    }
    return out;
  }

  void add_gradient(const std::vector<double>& weights, double noise, const Matrix& inverse,
                    const std::vector<double>& alpha, double scale, const Matrix& slopes,
                    std::vector<double>& gradient) const {
    const std::size_t d = kinds_.size();
    std::size_t at = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        double element = 0;
        for (std::size_t k = i; k < n_; ++k) {
          element += inverse[i * n_ + k] * inverse[j * n_ + k];
        }
        // d log p / d K(i, j), both triangles, times 2.
        const double pull = (alpha[i] * alpha[j] / scale - element) * (i == j ? 1 : 2);
        if (i == j) {
          gradient[d] += 0.5 * pull * noise;
        }
        const double slope = slopes[i * n_ + j];
        for (std::size_t q = 0; q < d; ++q) {
          gradient[q] += pull * weights[q] * squares_[at + q] * (kinds_[q] == CoordinateKind::linear ? 1 : slope);
        }
        at += d;
      }
    }
  }

  void add_priors(const std::vector<double>& theta, double& log_posterior, std::vector<double>& gradient) const {
    const auto pull = [&](std::size_t i, double mean, double deviation) {
      const double off = (theta[i] - mean) / deviation;
      log_posterior -= 0.5 * off * off;
      gradient[i] -= off / deviation;
    };
    for (std::size_t q = 0; q < kinds_.size(); ++q) {
      pull(q, kinds_[q] == CoordinateKind::linear ? kLinearMean : 0, kInverseLengthDeviation);
    }
    pull(kinds_.size(), kNoiseMean, kNoiseDeviation);
  }

  const std::vector<CoordinateKind>& kinds_;
  const Rows& rows_;
  std::span<const double> values_;
  std::size_t n_;
  std::vector<double> squares_;  ///< by pair of rows, then coordinate
};

void standardize(std::vector<double>& values) {
  const double count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (double& value : values) {
    value -= mean;
    squares += value * value;
  }
  const double deviation = std::sqrt(squares / count + 1e-12);
  for (double& value : values) {
    value /= deviation;
  }
}

}  // namespace

void fit_covariance(Covariance& covariance, const Rows& rows, std::vector<double> values, int steps) {
  standardize(values);
  const std::size_t d = covariance.kinds.size();
  Likelihood likelihood(covariance, rows, values);
  std::vector<double> theta;
  for (const double weight : covariance.weights) {
    theta.push_back(0.5 * std::log(weight));
  }
  theta.push_back(std::log(covariance.noise));
  std::vector<double> best = theta;
  double best_posterior = 0;
  bool any = false;
  std::vector<double> step(d + 1, 0.2);
  std::vector<double> before(d + 1, 0);
  std::vector<double> gradient;
  for (int i = 0; i < steps; ++i) {
    double posterior = 0;
    if (!likelihood.evaluate(theta, posterior, gradient)) {
      theta[d] += 1;  // more noise makes any covariance positive
      continue;
    }
    if (!any || posterior > best_posterior) {
      any = true;
      best_posterior = posterior;
      best = theta;
    }
    for (std::size_t q = 0; q <= d; ++q) {
      const double same = before[q] * gradient[q];
      step[q] = same > 0 ? std::min(step[q] * 1.3, 1.0) : same < 0 ? step[q] * 0.5 : step[q];
      before[q] = gradient[q];
      theta[q] += gradient[q] > 0 ? step[q] : -step[q];
      theta[q] = q < d ? std::clamp(theta[q], -4.0, 4.0) : std::clamp(theta[q], -12.0, 0.0);
    }
  }
  if (any) {
    for (std::size_t q = 0; q < d; ++q) {
      covariance.weights[q] = std::exp(2 * best[q]);
    }
    covariance.noise = std::exp(best[d]);
  }
}

}  // namespace pascaline
