#include "tuner/search/gaussian_process.hpp"

#include <algorithm>
#include <cmath>

namespace pascaline {
namespace {

double matern(double squared_distance) {
  const double r = std::sqrt(5 * squared_distance);
  return (1 + r + r * r / 3) * std::exp(-r);
}

}  // namespace

double Covariance::operator()(std::span<const float> a, std::span<const float> b) const noexcept {
  double squared = 0;
  double products = 0;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == CoordinateKind::linear) {
      products += weights[i] * static_cast<double>(a[i]) * static_cast<double>(b[i]);
    } else {
      const double apart = coordinate_difference(kinds[i], a[i], b[i]);
      squared += weights[i] * apart * apart;
    }
  }
  return matern(squared) + products;
}

double Covariance::at(std::span<const float> a) const noexcept { return (*this)(a, a); }

Covariance first_covariance(std::vector<CoordinateKind> kinds) {
  Covariance covariance;
  for (const CoordinateKind kind : kinds) {
    covariance.weights.push_back(kind == CoordinateKind::linear ? 0.1 : 1.0);
  }
  covariance.kinds = std::move(kinds);
  return covariance;
}

Posterior::Posterior(Covariance covariance, Rows candidates)
    : covariance_(std::move(covariance)), candidates_(std::move(candidates)), rows_(candidates_.width()) {
  explained_.assign(candidates_.size(), 0);
  by_values_.assign(candidates_.size(), 0);
  by_ones_.assign(candidates_.size(), 0);
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    variance_.push_back(static_cast<float>(covariance_.at(candidates_[i])));
  }
}

void Posterior::observe(std::span<const float> row, double value) {
  const std::size_t count = factor_.size();
  if (count == 0) {
    origin_ = value;
  }
  value -= origin_;
  std::vector<double> line = whiten(row);
  double explained = 0;
  double whitened_value = value;
  double whitened_one = 1;
  for (std::size_t i = 0; i < count; ++i) {
    explained += line[i] * line[i];
    whitened_value -= line[i] * whitened_values_[i];
    whitened_one -= line[i] * whitened_ones_[i];
  }
  line.push_back(std::sqrt(std::max(covariance_.at(row) + covariance_.noise - explained, 1e-10)));
  whitened_values_.push_back(whitened_value / line[count]);
  whitened_ones_.push_back(whitened_one / line[count]);

  const std::size_t candidates = candidates_.size();
  std::vector<float> column(candidates);
  for (std::size_t c = 0; c < candidates; ++c) {
    column[c] = static_cast<float>(covariance_(row, candidates_[c]));
  }
  float* const out = column.data();
  for (std::size_t i = 0; i < count; ++i) {
    const float factor = static_cast<float>(line[i]);
    const float* const earlier = whitened_[i].data();
    for (std::size_t c = 0; c < candidates; ++c) {
      out[c] -= factor * earlier[c];
    }
  }
  const float scale = static_cast<float>(1 / line[count]);
  for (std::size_t c = 0; c < candidates; ++c) {
    out[c] *= scale;
    explained_[c] += out[c] * out[c];
    by_values_[c] += whitened_values_[count] * static_cast<double>(out[c]);
    by_ones_[c] += whitened_ones_[count] * static_cast<double>(out[c]);
  }
  whitened_.push_back(std::move(column));
  factor_.push_back(std::move(line));
  rows_.add(row);
  values_.push_back(value);
  sums_.plain += value;
  sums_.ones += whitened_ones_.back() * whitened_ones_.back();
  sums_.cross += whitened_ones_.back() * whitened_values_.back();
  sums_.values += whitened_values_.back() * whitened_values_.back();
}

void Posterior::revise(std::size_t observation, double value) {
  value -= origin_;
  sums_.plain += value - values_[observation];
  std::vector<double> changes(factor_.size(), 0);
  changes[observation] = value - values_[observation];
  values_[observation] = value;
  for (std::size_t i = observation; i < factor_.size(); ++i) {
    for (std::size_t k = observation; k < i; ++k) {
      changes[i] -= factor_[i][k] * changes[k];
    }
    changes[i] /= factor_[i][i];
    const double before = whitened_values_[i];
    whitened_values_[i] += changes[i];
    sums_.cross += whitened_ones_[i] * changes[i];
    sums_.values += whitened_values_[i] * whitened_values_[i] - before * before;
    const float* const column = whitened_[i].data();
    for (std::size_t c = 0; c < by_values_.size(); ++c) {
      by_values_[c] += changes[i] * static_cast<double>(column[c]);
    }
  }
}

// factor⁻¹ of the row's covariances with the observations.
std::vector<double> Posterior::whiten(std::span<const float> row) const {
  std::vector<double> column(factor_.size());
  for (std::size_t i = 0; i < factor_.size(); ++i) {
    double sum = covariance_(rows_[i], row);
    for (std::size_t k = 0; k < i; ++k) {
      sum -= factor_[i][k] * column[k];
    }
    column[i] = sum / factor_[i][i];
  }
  return column;
}

void Posterior::add_candidate(std::span<const float> row) {
  candidates_.add(row);
  const std::vector<double> column = whiten(row);
  double explained = 0;
  double by_values = 0;
  double by_ones = 0;
  for (std::size_t i = 0; i < column.size(); ++i) {
    explained += column[i] * column[i];
    by_values += column[i] * whitened_values_[i];
    by_ones += column[i] * whitened_ones_[i];
    whitened_[i].push_back(static_cast<float>(column[i]));
  }
  variance_.push_back(static_cast<float>(covariance_.at(row)));
  explained_.push_back(static_cast<float>(explained));
  by_values_.push_back(by_values);
  by_ones_.push_back(by_ones);
}

double Posterior::mean() const noexcept { return origin_ + centre(); }

double Posterior::centre() const noexcept {
  return values_.empty() ? 0 : sums_.plain / static_cast<double>(values_.size());
}

// (y - m)ᵀ K⁻¹ (y - m) over their number.
double Posterior::deviation() const noexcept {
  const double m = centre();
  const double squares = sums_.values - 2 * m * sums_.cross + m * m * sums_.ones;
  return std::sqrt(std::max(squares, 0.0) / static_cast<double>(std::max<std::size_t>(1, factor_.size())) + 1e-12);
}

double Posterior::expected(std::span<const float> row) const {
  const std::vector<double> column = whiten(row);
  double sum = mean();
  for (std::size_t i = 0; i < column.size(); ++i) {
    sum += column[i] * (whitened_values_[i] - centre() * whitened_ones_[i]);
  }
  return sum;
}

void Posterior::predict(std::vector<double>& expected, std::vector<double>& deviations) const {
  const double m = centre();
  const double scale = deviation();
  expected.resize(candidates_.size());
  deviations.resize(candidates_.size());
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    expected[c] = origin_ + m + by_values_[c] - m * by_ones_[c];
    deviations[c] = scale * std::sqrt(std::max(static_cast<double>(variance_[c] - explained_[c]), 1e-9));
  }
}

}  // namespace pascaline
