#include "tuner/plan.hpp"

#include <algorithm>

namespace pascaline {
namespace {

// Better than the best rates seen so far there may be; by how much is a guess that only orders problems.
constexpr double kHeadroom = 1.1;
// Trials without improvement count only as many of them come together.
constexpr double kPriorTrials = 16;
constexpr double kPriorImprovement = 0.3;
// Untried problems go first; their work in microseconds at a petaflop a second is below that in any case.
constexpr double kUntried = 1e12;

constexpr double kGuessedCompileMs = 900;
constexpr double kGuessedMeasureMs = 250;

double room_left(const SearchProgress& problem, const AttainedRates& rates) {
  const double by_flops = rates.flops_per_us > 0 ? problem.flops / (kHeadroom * rates.flops_per_us) : 0;
  const double by_bytes = rates.bytes_per_us > 0 ? problem.bytes / (kHeadroom * rates.bytes_per_us) : 0;
  return std::clamp(1 - std::max(by_flops, by_bytes) / problem.best_us, 0.0, 1.0);
}

}  // namespace

AttainedRates attained_rates(std::span<const SearchProgress> problems) {
  AttainedRates rates;
  for (const SearchProgress& problem : problems) {
    if (problem.best_us > 0) {
      rates.flops_per_us = std::max(rates.flops_per_us, problem.flops / problem.best_us);
      rates.bytes_per_us = std::max(rates.bytes_per_us, problem.bytes / problem.best_us);
    }
  }
  return rates;
}

double expected_gain(const SearchProgress& problem, const AttainedRates& rates) {
  if (problem.trials == 0) {
    return kUntried + problem.count * (problem.flops + problem.bytes) * 1e-9;
  }
  if (!(problem.best_us > 0)) {
    return 0;  // nothing usable in a whole slice: what works goes first
  }
  const double last_doubling =
      problem.best_at_half_us > 0 ? std::max(0.0, 1 - problem.best_us / problem.best_at_half_us) : kPriorImprovement;
  const double trials = problem.trials;
  const double next_doubling = (last_doubling * trials + kPriorImprovement * kPriorTrials) / (trials + kPriorTrials);
  const double share = std::min(next_doubling, room_left(problem, rates));
  return problem.count * problem.best_us * share / std::max(problem.spent_s, 1e-3);
}

TrialEstimate estimate_trial(std::optional<double> compile_ms, std::optional<double> measure_ms, std::size_t jobs) {
  const double compile = compile_ms.value_or(kGuessedCompileMs) / static_cast<double>(std::max<std::size_t>(jobs, 1));
  return {std::max(compile, measure_ms.value_or(kGuessedMeasureMs)) / 1000, compile_ms && measure_ms};
}

}  // namespace pascaline
