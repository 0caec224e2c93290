#include "tuner/sweep/finals_budget.hpp"

#include <algorithm>
#include <cmath>

#include "tuner/finals/objective.hpp"

namespace pascaline {
namespace {

constexpr double kShareOfFinals = 0.2;         // of the whole time, where that is enough for any finals
constexpr double kLargestShareOfFinals = 0.5;  // where it is not
constexpr double kEnergySeconds = 7;           // of winner and baseline, at most
constexpr double kDecisionSeconds = 0.3;
constexpr int kLooksAgain = 4;  // in as many rounds as finals before them had

}  // namespace

FinalsNeed FinalsBudget::need(const SweepTask& task) const {
  const ProblemSearch& search = task.search;
  const std::optional<Config> baseline = search.baseline();
  FinalsNeed need;
  for (const Config& config : task.wanted_finalists(by_time_alone())) {
    if (config == baseline) {
      need.baseline_s = search.launch_s(config);
    } else {
      need.launch_s.push_back(search.launch_s(config));
    }
  }
  const FinalsOptions finals = options(task);
  need.rounds = finals.rounds;
  need.fewest_wanted = finals.min_rounds;
  need.fewest = std::min(kMinFinalsRounds, finals.rounds);
  need.launches = finals.launches;
  return need;
}

bool FinalsBudget::by_time_alone() const { return objective_of(options_.finals).by_time_alone(); }

bool FinalsBudget::takes_energies(const SweepTask& task) const {
  return !by_time_alone() || task.costs.spent_s >= options_.finals.energy_after_search_s;
}

// Repeated finals have more rounds, and a tie width that shrinks as the medians get more precise. Their first look at
// the times comes after as many rounds as the previous finals had.
FinalsOptions FinalsBudget::options(const SweepTask& task) const {
  FinalsOptions options = options_.finals;
  if (!takes_energies(task)) {
    options.energy_window_ms = 0;
  }
  if (task.deepening.what == Deepening::finals) {
    const int factor = rounds_factor(task.finals.again);
    options.min_rounds = std::max(options.min_rounds, options.rounds * factor / rounds_factor(1));
    options.rounds *= factor;
    options.rounds_per_look = std::max(options.rounds_per_look, options.min_rounds / kLooksAgain);
    options.tie_width /= std::sqrt(static_cast<double>(factor));
  }
  return options;
}

// Where finals of this run have measured them, they are mostly not measured again.
double FinalsBudget::energies_s(const SweepTask& task) const {
  return status_.tells_power() && takes_energies(task) && !task.finals.energies ? kEnergySeconds : 0;
}

// Of windows by another objective, the fewest that decide anything.
double FinalsBudget::objective_s() const {
  const FinalsOptions& finals = options_.finals;
  return kContendersByObjective * finals.objective.min_rounds * objective_of(finals).window_s(finals);
}

// Time that finals may take once all other problems had theirs: enough to decide the objective, if no winner by it is
// stored.
double FinalsBudget::wanted_s(const SweepTask& task, double share_s, double left_s, bool lacks_objective) const {
  if (!lacks_objective) {
    return share_s;
  }
  const FinalsNeed need = this->need(task);
  const double all_s = finals_seconds(need, {need.launch_s.size(), need.fewest_wanted}) + kDecisionSeconds +
                       kAnswerSeconds + objective_s();
  return std::max(share_s, std::min(left_s, all_s));
}

// The best and the baseline, just often enough to tell them apart.
double FinalsBudget::min_s(const SweepTask& task) const {
  const std::string key = task.search.finalists_key();
  if (key.empty() || key == task.finals.decided_on) {
    return 0;
  }
  const FinalsNeed need = this->need(task);
  return finals_seconds(need, {1, need.fewest}) + kDecisionSeconds;
}

double FinalsBudget::reserve_s(const SweepTask& task, double limit_s) const {
  const double least_s = min_s(task);
  if (!(least_s > 0)) {
    return 0;
  }
  const FinalsNeed need = this->need(task);
  const double all_s = finals_seconds(need, {need.launch_s.size(), need.rounds}) + kDecisionSeconds +
                       std::max(energies_s(task), objective_s());
  const double most_s = std::max(kShareOfFinals * limit_s, std::min(least_s, kLargestShareOfFinals * limit_s));
  return std::min(all_s, most_s);
}

std::optional<FinalsFit> FinalsBudget::fit(const SweepTask& task, double allowed_s) const {
  const FinalsNeed need = this->need(task);
  const auto fit = fit_finals(need, allowed_s - objective_s());
  return fit ? fit : fit_finals(need, allowed_s);
}

}  // namespace pascaline
