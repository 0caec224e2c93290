#include <algorithm>
#include <limits>
#include <numeric>

#include "report/gather_parts.hpp"

namespace pascaline {
namespace {

// A parameter of more values than this is a number, not a choice; the document shows some of them.
constexpr std::size_t kMaxValues = 64;
constexpr std::size_t kMaxHeatValues = 24;
constexpr std::size_t kNoPlace = std::numeric_limits<std::size_t>::max();

// Which of a parameter's values are shown, and where.
struct ShownValues {
  std::vector<Value> values;
  std::vector<std::size_t> place_of;  // by the table's index; kNoPlace: not shown
  std::size_t more = 0;
};

// Values of trials of other stages are none of the search's.
std::vector<bool> searched(const GatheredProblem& problem, std::size_t column) {
  std::vector<bool> used(problem.configs.values(column).size(), false);
  for (std::size_t row = 0; row < problem.trials.size(); ++row) {
    const auto index = problem.configs.index(column, row);
    if (index && problem.trials[row].stage == TrialStage::search) {
      used[*index] = true;
    }
  }
  return used;
}

ShownValues shown_values(const GatheredProblem& problem, std::size_t column) {
  const std::vector<Value>& all = problem.configs.values(column);
  const std::vector<bool> used = searched(problem, column);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (used[i]) {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return value_less(all[a], all[b]); });
  ShownValues shown;
  shown.place_of.assign(all.size(), kNoPlace);
  for (const std::size_t at : evenly(order.size(), kMaxValues)) {
    shown.place_of[order[at]] = shown.values.size();
    shown.values.push_back(all[order[at]]);
  }
  shown.more = order.size() - shown.values.size();
  return shown;
}

std::optional<double> median_of(std::vector<double>& values) {
  if (values.empty()) {
    return std::nullopt;
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) {
    return *middle;
  }
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

void lower(std::optional<double>& best, double time_us) { best = best ? std::min(*best, time_us) : time_us; }

std::optional<double> effect_of(const std::vector<std::optional<double>>& best_us) {
  std::optional<double> least;
  double most = 0;
  std::size_t count = 0;
  for (const std::optional<double>& best : best_us) {
    if (best) {
      lower(least, *best);
      most = std::max(most, *best);
      ++count;
    }
  }
  return count > 1 && *least > 0 ? std::optional(most / *least) : std::nullopt;
}

ReportParameter parameter_of(const GatheredProblem& problem, std::size_t column) {
  ShownValues shown = shown_values(problem, column);
  const std::size_t count = shown.values.size();
  ReportParameter out;
  out.name = problem.configs.name(column);
  out.trials.assign(count, 0);
  out.ok.assign(count, 0);
  out.best_us.assign(count, std::nullopt);
  out.values_more = shown.more;
  std::vector<std::vector<double>> times(count);
  for (std::size_t row = 0; row < problem.trials.size(); ++row) {
    const TrialPoint& trial = problem.trials[row];
    const auto index = problem.configs.index(column, row);
    if (!index || trial.stage != TrialStage::search || shown.place_of[*index] == kNoPlace) {
      continue;
    }
    const std::size_t at = shown.place_of[*index];
    ++out.trials[at];
    if (has_time(trial.status)) {
      ++out.ok[at];
      times[at].push_back(trial.median_us);
      lower(out.best_us[at], trial.median_us);
    }
  }
  std::transform(times.begin(), times.end(), std::back_inserter(out.median_us), median_of);
  out.effect = effect_of(out.best_us);
  out.values = std::move(shown.values);
  return out;
}

ReportHeatPair pair_of(const GatheredProblem& problem, std::size_t x, std::size_t y, std::size_t column_x,
                       std::size_t column_y) {
  const ShownValues across = shown_values(problem, column_x);
  const ShownValues down = shown_values(problem, column_y);
  ReportHeatPair pair{x, y, {}};
  pair.best_us.assign(down.values.size(), std::vector<std::optional<double>>(across.values.size()));
  for (std::size_t row = 0; row < problem.trials.size(); ++row) {
    const TrialPoint& trial = problem.trials[row];
    const auto at_x = problem.configs.index(column_x, row);
    const auto at_y = problem.configs.index(column_y, row);
    if (has_time(trial.status) && trial.stage == TrialStage::search && at_x && at_y) {
      lower(pair.best_us[down.place_of[*at_y]][across.place_of[*at_x]], trial.median_us);
    }
  }
  return pair;
}

}  // namespace

std::vector<ReportParameter> parameter_effects(const GatheredProblem& problem, const std::vector<std::size_t>& order) {
  std::vector<ReportParameter> parameters;
  std::transform(order.begin(), order.end(), std::back_inserter(parameters),
                 [&](std::size_t column) { return parameter_of(problem, column); });
  return parameters;
}

std::optional<ReportHeat> heat_of(const GatheredProblem& problem, const std::vector<ReportParameter>& effects,
                                  const std::vector<std::size_t>& order, std::size_t most_parameters) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < effects.size(); ++i) {
    if (effects[i].effect && effects[i].values.size() <= kMaxHeatValues) {
      chosen.push_back(i);
    }
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](std::size_t a, std::size_t b) { return *effects[a].effect > *effects[b].effect; });
  chosen.resize(std::min(chosen.size(), most_parameters));
  if (chosen.size() < 2) {
    return std::nullopt;
  }
  ReportHeat heat;
  for (std::size_t x = 0; x < chosen.size(); ++x) {
    heat.parameters.push_back(effects[chosen[x]].name);
    for (std::size_t y = x + 1; y < chosen.size(); ++y) {
      heat.pairs.push_back(pair_of(problem, x, y, order[chosen[x]], order[chosen[y]]));
    }
  }
  return heat;
}

}  // namespace pascaline
