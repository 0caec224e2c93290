#pragma once

#include <map>

namespace pascaline {

class Tunable;

/// How much longer the measured defaults of a device's kernels took than their bounds by arithmetic and memory, which
/// tells about those that are not measured.
class DefaultTimes {
 public:
  /// A measured default, by the logarithm of its time over its bound.
  void add(const Tunable* tunable, double log_factor);
  /// The logarithm to expect of a kernel: the mean, in which others count less; 0 if nothing was measured.
  [[nodiscard]] double log_factor(const Tunable* tunable) const;
  /// EstimatedDefaults::factor of times that are estimated so: by how far each measured kernel is from what the others
  /// let expect of it.
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
