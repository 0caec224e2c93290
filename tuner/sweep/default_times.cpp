#include "tuner/sweep/default_times.hpp"

#include <algorithm>
#include <cmath>

#include "core/model_time.hpp"
#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

// Defaults of other kernels, and none at all, next to one of the same kernel.
constexpr double kWeightOfOtherKernel = 0.1;
constexpr double kWeightOfGuess = 0.2;
// Before any is measured, how far the logarithms of times and bounds are apart. It counts as so many kernels.
constexpr double kGuessedSpread = 1.2;
constexpr double kGuessedKernels = 3;

}  // namespace

void DefaultTimes::add(const Tunable* tunable, double log_factor) {
  for (Sum* const sum : {&of_kernels_[tunable], &of_all_}) {
    sum->value += log_factor;
    sum->count += 1;
  }
}

double DefaultTimes::mean(const Sum& all, const Sum& own) {
  const double rest = 1 - kWeightOfOtherKernel;  // beside what it counts among all
  return (kWeightOfOtherKernel * all.value + rest * own.value) /
         (kWeightOfGuess + kWeightOfOtherKernel * all.count + rest * own.count);
}

double DefaultTimes::log_factor(const Tunable* tunable) const {
  const auto found = of_kernels_.find(tunable);
  return mean(of_all_, found == of_kernels_.end() ? Sum() : found->second);
}

double DefaultTimes::factor_of_estimates() const {
  double squares = kGuessedKernels * kGuessedSpread * kGuessedSpread;
  for (const auto& [tunable, own] : of_kernels_) {
    const Sum others{of_all_.value - own.value, of_all_.count - own.count};
    const double off = own.value / own.count - mean(others, {});
    squares += off * off;
  }
  const double kernels = kGuessedKernels + static_cast<double>(of_kernels_.size());
  return std::max(EstimatedDefaults::kMinFactor, std::exp(kErrorsOf95 * std::sqrt(squares / kernels)));
}

}  // namespace pascaline
