#pragma once

#include <map>

namespace pascaline {

class Tunable;

/// Ratios of measured default times to their roofline bounds, on one device. They predict the defaults that were not
/// measured.
class DefaultTimes {
 public:
  /// Adds a measured default; `log_factor` is log(time / bound).
  void add(const Tunable* tunable, double log_factor);
  /// Returns the expected log factor of a kernel: a mean in which other kernels have less weight, shrunk towards 0; 0
  /// without measurements.
  [[nodiscard]] double log_factor(const Tunable* tunable) const;
  /// Returns EstimatedDefaults::factor for these predictions, from their leave-one-kernel-out errors and a guess that
  /// counts less the more kernels were measured.
  [[nodiscard]] double factor_of_estimates() const;

 private:
  struct Sum {
    double value = 0;
    double count = 0;
  };
  [[nodiscard]] static double mean(const Sum& all, const Sum& own);

  std::map<const Tunable*, Sum> of_kernels_;
  Sum of_all_;
};

}  // namespace pascaline
