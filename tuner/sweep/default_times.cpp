#include "tuner/sweep/default_times.hpp"

#include <algorithm>
#include <cmath>

#include "core/model_time.hpp"

namespace pascaline {
namespace {

constexpr double kErrorsOfEstimate = 1.96;  // that half of a 95 % interval is
// Defaults of other kernels, and none at all, next to one of the same kernel.
constexpr double kWeightOfOtherKernel = 0.1;
constexpr double kWeightOfGuess = 0.2;

}  // namespace

void DefaultTimes::add(const Tunable* tunable, double log_factor) {
  for (Sum* const sum : {&of_kernels_[tunable], &of_all_}) {
    sum->value += log_factor;
    sum->squares += log_factor * log_factor;
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
  if (of_kernels_.size() == 1) {  // of others nothing is known: how its shapes differ
    const double mean = of_all_.value / of_all_.count;
    const double variance = std::max(0.0, of_all_.squares / of_all_.count - mean * mean);
    return std::max(EstimatedDefaults::kMinFactor, std::exp(kErrorsOfEstimate * std::sqrt(variance)));
  }
  double squares = 0;
  for (const auto& [tunable, own] : of_kernels_) {
    const Sum others{of_all_.value - own.value, of_all_.squares - own.squares, of_all_.count - own.count};
    const double off = own.value / own.count - mean(others, {});
    squares += off * off;
  }
  const double kernels = std::max(1.0, static_cast<double>(of_kernels_.size()));
  return std::max(EstimatedDefaults::kMinFactor, std::exp(kErrorsOfEstimate * std::sqrt(squares / kernels)));
}

}  // namespace pascaline
