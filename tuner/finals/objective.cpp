#include "tuner/finals/objective.hpp"

#include <algorithm>

namespace pascaline {

std::size_t ContenderComparison::best() const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < count_; ++i) {
    best = is_in(i) && (!best || score(i) < score(*best)) ? i : best;
  }
  return best.value_or(0);
}

bool ContenderComparison::is_tied(std::size_t i) const {
  const std::size_t first = best();
  return i == first || (is_in(i) && !better(first, i));
}

std::vector<std::size_t> ContenderComparison::tie_set() const {
  std::vector<std::size_t> members;
  for (std::size_t i = 0; i < count_; ++i) {
    if (is_tied(i)) {
      members.push_back(i);
    }
  }
  return members;
}

bool ContenderComparison::settled() const {
  const std::vector<std::size_t> tied = tie_set();
  return tied.size() == 1 || std::ranges::all_of(tied, [this](std::size_t i) { return known_alike(i); });
}

ContenderComparison::Choice ContenderComparison::decide(std::optional<std::size_t> baseline,
                                                        std::optional<std::size_t> incumbent) const {
  std::vector<std::size_t> members = tie_set();
  const bool tie = members.size() > 1;
  const bool baseline_ties = baseline && is_tied(*baseline);
  const bool leads = incumbent && is_tied(*incumbent);
  if (baseline && incumbent && (baseline_ties || (leads && !better(*incumbent, *baseline)))) {
    if (const auto confidence = holds(*incumbent, *baseline)) {
      return {*incumbent, *confidence, tie};
    }
  }
  std::erase_if(members, [&](std::size_t i) { return baseline && !beats(i, *baseline); });
  const bool stays = incumbent && std::ranges::find(members, *incumbent) != members.end();
  std::erase_if(members, [&](std::size_t i) { return incumbent && !stays && i != best() && !better(i, *incumbent); });
  if (baseline_ties || members.empty()) {
    return {baseline.value_or(best()), 0.5, tie};
  }
  const auto first = std::ranges::min_element(members, [this](auto a, auto b) { return comes_first(a, b); });
  const std::size_t winner = stays ? *incumbent : *first;
  return {winner, baseline ? 1.0 - p(winner, *baseline) / 2.0 : 1.0, tie};
}

ObjectiveOptions FinalsObjective::defaults() const {
  ObjectiveOptions options;
  options.objective = id();
  return options;
}

}  // namespace pascaline
