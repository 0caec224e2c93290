#include "tuner/sweep/budget.hpp"

#include <algorithm>

#include "tuner/finals/objective.hpp"

namespace pascaline {
namespace {

constexpr double kLoadSeconds = 0.02;  // of a finalist, to the device

}  // namespace

double finals_seconds(const FinalsNeed& need, const FinalsFit& fit) {
  double once_s = need.baseline_s;
  double load_s = need.baseline_s > 0 ? kLoadSeconds : 0;
  for (std::size_t i = 0; i < std::min(fit.finalists, need.launch_s.size()); ++i) {
    once_s += need.launch_s[i];
    load_s += kLoadSeconds;
  }
  return load_s + once_s * (1 + fit.rounds * need.launches);
}

std::optional<FinalsFit> fit_finals(const FinalsNeed& need, double allowed_s) {
  FinalsFit fit{need.launch_s.size(), need.rounds};
  const std::size_t fewest_finalists = std::min<std::size_t>(1, fit.finalists);
  const int wanted = std::min(need.rounds, need.fewest_wanted);
  while (finals_seconds(need, fit) > allowed_s) {
    const bool fewest = fit.finalists == fewest_finalists;
    if (fit.rounds > (fewest ? need.fewest : wanted)) {
      --fit.rounds;
    } else if (!fewest) {
      --fit.finalists;
    } else {
      return std::nullopt;
    }
  }
  return fit;
}

double objective_windows_s(const FinalsOptions& finals) {
  const FinalsObjective& objective = objective_of(finals);
  return objective.first_window_s(finals) +
         kContendersByObjective * finals.objective.min_rounds * objective.window_s(finals);
}

std::optional<double> estimate_s(const PlannedWork& work, const TrialCost& cost) {
  if (cost.problems == 0 || (cost.paced == 0 && cost.ran == 0)) {
    return std::nullopt;
  }
  const double pace_ms = cost.paced > 0 ? cost.pace_ms : cost.run_ms;
  return (work.problems * cost.problem_ms + work.trials * pace_ms) / 1000;
}

}  // namespace pascaline
