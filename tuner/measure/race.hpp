#pragma once

#include <span>

#include "core/trial.hpp"

namespace pascaline {

/// How much the times of one configuration scatter, from those that were measured before: variances of the natural
/// logarithms of counted samples, each by the median absolute deviation, so that a launch that something interrupted
/// changes little.
class NoiseScale {
 public:
  /// Takes in what one configuration's samples tell; fewer than three counted ones tell nothing.
  void add(std::span<const Sample> samples);
  /// The pooled variance; 0 while nothing is known.
  [[nodiscard]] double variance() const noexcept { return degrees_ > 0 ? weighted_ / degrees_ : 0; }
  /// Degrees of freedom that it has.
  [[nodiscard]] double degrees_of_freedom() const noexcept { return degrees_; }

 private:
  double weighted_ = 0;
  double degrees_ = 0;
};

/// Tells, sample by sample, whether a configuration is slower than the best so far: a t-test of the median of its
/// logarithmic times, with the variance of its own samples and of the configurations before it, at a level that is
/// spent on the looks as 6 / (π k)², k = 1, 2, …; so the chance that a configuration as fast as the best is found
/// slower at any of them is at most `error`, as far as logarithms of times scatter normally and alike. As launches are
/// also interrupted now and then, none of the samples may be as fast as the best. Times are known to half a
/// microsecond, the resolution of CUDA's events (CUDA Driver API, cuEventElapsedTime).
class Race {
 public:
  /// `best_us`: the best median so far, 0 if there is none; then nothing is ever slower. `margin`: a configuration must
  /// be slower by more than this share, as the best is known no better. `error` 0: nothing is ever slower.
  Race(double best_us, double error, double margin, const NoiseScale& noise);

  /// Whether the counted ones of `samples`, times `clock_scale`, are slower than the best. There must be three.
  [[nodiscard]] bool lost(std::span<const Sample> samples, double clock_scale) const;

  /// The fewest samples that decide anything.
  static constexpr int kMinSamples = 3;

 private:
  double log_best_ = 0;  ///< and the margin
  double log_margin_ = 0;
  double error_;
  double prior_variance_;
  double prior_degrees_;
};

}  // namespace pascaline
