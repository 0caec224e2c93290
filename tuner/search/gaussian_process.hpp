#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "tuner/search/coordinates.hpp"

namespace pascaline {

/// Rows of coordinates, one after another.
class Rows {
 public:
  explicit Rows(std::size_t width = 0) : width_(width) {}
  [[nodiscard]] std::size_t width() const noexcept { return width_; }
  [[nodiscard]] std::size_t size() const noexcept { return width_ == 0 ? 0 : values_.size() / width_; }
  [[nodiscard]] std::span<const float> operator[](std::size_t row) const {
    return std::span(values_).subspan(row * width_, width_);
  }
  /// Room for one more row.
  [[nodiscard]] std::span<float> add() {
    values_.resize(values_.size() + width_);
    return std::span(values_).subspan(values_.size() - width_);
  }
  void shrink(std::size_t size) { values_.resize(std::min(values_.size(), size * width_)); }
  void add(std::span<const float> row) { values_.insert(values_.end(), row.begin(), row.end()); }

 private:
  std::size_t width_;
  std::vector<float> values_;
};

/// Covariance of a Gaussian process up to a common factor: Matérn 5/2 over the weighted distance of ordered and
/// category coordinates, plus a weighted product for each linear one (Rasmussen and Williams, "Gaussian Processes for
/// Machine Learning", 2006, chapters 4 and 5).
struct Covariance {
  std::vector<CoordinateKind> kinds;
  std::vector<double> weights;  ///< per coordinate: inverse squared length, or variance of a linear one's factor
  double noise = 0.01;          ///< variance of what repeats differ by

  [[nodiscard]] double operator()(std::span<const float> a, std::span<const float> b) const noexcept;
  [[nodiscard]] double at(std::span<const float> a) const noexcept;  ///< of a row with itself, without noise
};

/// A covariance of middling lengths to begin a fit with.
[[nodiscard]] Covariance first_covariance(std::vector<CoordinateKind> kinds);

/// Improves weights and noise towards the most probable ones given values at rows, shifted and scaled to mean 0 and
/// variance 1, under log-normal priors, by `steps` of resilient propagation. O(steps x n³).
void fit_covariance(Covariance& covariance, const Rows& rows, std::vector<double> values, int steps);

/// What a Gaussian process says of a set of candidates, kept up to date as observations come: each costs
/// O(candidates x observations).
class Posterior {
 public:
  Posterior(Covariance covariance, Rows candidates);

  [[nodiscard]] std::size_t observations() const noexcept { return factor_.size(); }
  [[nodiscard]] std::size_t candidates() const noexcept { return candidates_.size(); }
  void observe(std::span<const float> row, double value);
  /// Gives an observation another value, numbered in the order in which they came. O(candidates x observations since).
  void revise(std::size_t observation, double value);
  [[nodiscard]] double value(std::size_t observation) const { return origin_ + values_.at(observation); }
  void add_candidate(std::span<const float> row);

  /// The values' plain mean, which is the prior mean: a search sees more good configurations than bad ones, so it
  /// expects of what it does not know that it is as good as what it has found, and looks.
  [[nodiscard]] double mean() const noexcept;
  /// The values' scale given how their rows hang together.
  [[nodiscard]] double deviation() const noexcept;
  /// Expected value of any row. O(observations²).
  [[nodiscard]] double expected(std::span<const float> row) const;
  /// Expected value of each candidate, and its standard deviation, in the values' units.
  void predict(std::vector<double>& expected, std::vector<double>& deviations) const;

 private:
  [[nodiscard]] double centre() const noexcept;
  [[nodiscard]] std::vector<double> whiten(std::span<const float> row) const;

  struct Sums {
    double ones = 0;    // 1ᵀ K⁻¹ 1
    double cross = 0;   // 1ᵀ K⁻¹ y
    double values = 0;  // yᵀ K⁻¹ y
    double plain = 0;   // of the values
  };

  Covariance covariance_;
  Rows candidates_;
  Rows rows_;
  std::vector<std::vector<double>> factor_;   ///< rows of the Cholesky factor
  double origin_ = 0;                         ///< the first value
  std::vector<double> values_;                ///< less the origin
  std::vector<double> whitened_values_;       ///< factor⁻¹ values
  std::vector<double> whitened_ones_;         ///< factor⁻¹ 1
  std::vector<std::vector<float>> whitened_;  ///< by observation: factor⁻¹ of the covariances with the candidates
  std::vector<float> explained_;              ///< of each candidate's variance
  std::vector<double> by_values_;             ///< of each candidate: its whitened column times whitened_values_
  std::vector<double> by_ones_;               ///< times whitened_ones_
  std::vector<float> variance_;               ///< of each candidate before any observation
  Sums sums_;
};

}  // namespace pascaline
