#include "tuner/sweep/shapes_between.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/space/shape_distance.hpp"

namespace pascaline {
namespace {

constexpr double kNarrowestGap = 1.5;
constexpr std::int64_t kRoundedBy = 8;  // no more than an eighth of a value

using Dimensions = std::vector<std::pair<std::string, std::int64_t>>;

double octaves_of_gap(const Dimensions& low, const Dimensions& high) {
  double octaves = 0;
  for (std::size_t i = 0; i < low.size(); ++i) {
    octaves = std::max(octaves, std::log2(static_cast<double>(high[i].second) / static_cast<double>(low[i].second)));
  }
  return octaves;
}

// Which of a family of shapes: all but what varies.
std::string varying_family_of(const Space& space, const Problem& problem) {
  Problem family = problem;
  for (std::size_t i = 0; i < family.dimensions.size(); ++i) {
    if (space.dimensions[i].varies && !space.dimensions[i].fixed) {
      family.dimensions[i].second = 0;
    }
  }
  return family.text();
}

// Where every dimension that differs grows.
bool grows(const Dimensions& low, const Dimensions& high) {
  bool differs = false;
  for (std::size_t i = 0; i < low.size(); ++i) {
    if (high[i].second < low[i].second || (high[i].second != low[i].second && low[i].second < 1)) {
      return false;
    }
    differs = differs || high[i].second != low[i].second;
  }
  return differs;
}

std::optional<Dimensions> middle_of(const Dimensions& low, const Dimensions& high) {
  Dimensions middle = low;
  bool differs = false;
  for (std::size_t i = 0; i < low.size(); ++i) {
    if (low[i].second != high[i].second) {
      if (const auto value = pascaline::middle_of(low[i].second, high[i].second)) {
        middle[i].second = *value;
        differs = true;
      }
    }
  }
  return differs ? std::optional(middle) : std::nullopt;
}

std::string gap_label(const Dimensions& low, const Dimensions& high) {
  std::string from;
  std::string to;
  for (std::size_t i = 0; i < low.size(); ++i) {
    if (low[i].second != high[i].second) {
      from += fmt::format("{}{}={}", from.empty() ? "" : " ", low[i].first, low[i].second);
      to += fmt::format("{}{}={}", to.empty() ? "" : " ", high[i].first, high[i].second);
    }
  }
  return fmt::format("between {} and {}", from, to);
}

bool fits_space(const Space& space, const Problem& problem) {
  try {
    space.check(problem);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Of one family, in order.
void add_family(const Space& space, std::vector<Problem> family, std::vector<SweepProblem>& problems) {
  std::sort(family.begin(), family.end(),
            [](const Problem& a, const Problem& b) { return a.dimensions < b.dimensions; });
  std::vector<Dimensions> line;
  for (const Problem& problem : family) {
    line.push_back(problem.dimensions);
  }
  std::vector<bool> closed(line.size(), false);  // the gap after each
  for (std::size_t made = 0; made < kMaxBetween;) {
    std::optional<std::size_t> widest;
    for (std::size_t i = 0; i + 1 < line.size(); ++i) {
      if (!closed[i] && grows(line[i], line[i + 1]) &&
          octaves_of_gap(line[i], line[i + 1]) > std::log2(kNarrowestGap) &&
          (!widest || octaves_of_gap(line[i], line[i + 1]) > octaves_of_gap(line[*widest], line[*widest + 1]))) {
        widest = i;
      }
    }
    if (!widest) {
      return;
    }
    const auto middle = middle_of(line[*widest], line[*widest + 1]);
    if (!middle) {
      closed[*widest] = true;
      continue;
    }
    Problem problem = family.front();
    problem.dimensions = *middle;
    if (!fits_space(space, problem)) {
      closed[*widest] = true;
      continue;
    }
    add_between(space, std::move(problem), gap_label(line[*widest], line[*widest + 1]), problems);
    const auto at = static_cast<std::ptrdiff_t>(*widest + 1);
    line.insert(line.begin() + at, *middle);
    closed.insert(closed.begin() + at, false);
    ++made;
  }
}

}  // namespace

std::optional<std::int64_t> middle_of(std::int64_t low, std::int64_t high) {
  if (low < 1 || high - low < 2) {
    return std::nullopt;
  }
  const double middle = std::sqrt(static_cast<double>(low)) * std::sqrt(static_cast<double>(high));
  std::int64_t step = 1;
  while (low % (2 * step) == 0 && high % (2 * step) == 0 && static_cast<double>(2 * step * kRoundedBy) <= middle) {
    step *= 2;
  }
  for (; step >= 1; step /= 2) {
    const auto value = static_cast<std::int64_t>(std::llround(middle / static_cast<double>(step))) * step;
    if (value > low && value < high) {
      return value;
    }
  }
  return std::nullopt;
}

std::vector<ValueBetween> values_between(std::vector<std::int64_t> values, std::size_t most) {
  std::sort(values.begin(), values.end());
  std::vector<ValueBetween> found;
  while (found.size() < most) {
    std::optional<ValueBetween> next;
    double widest = kNarrowestGap;
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      const double ratio = static_cast<double>(values[i + 1]) / static_cast<double>(values[i]);
      const auto middle = middle_of(values[i], values[i + 1]);
      if (middle && ratio > widest) {
        widest = ratio;
        next = ValueBetween{*middle, values[i], values[i + 1]};
      }
    }
    if (!next) {
      break;
    }
    found.push_back(*next);
    values.insert(std::upper_bound(values.begin(), values.end(), next->value), next->value);
  }
  return found;
}

void add_between(const Space& space, Problem problem, std::string label, std::vector<SweepProblem>& problems) {
  if (!fits_space(space, problem)) {
    return;
  }
  bool near = false;
  for (const SweepProblem& known : problems) {
    if (known.problem == problem) {
      return;
    }
    near = near || (!known.between && shape_distance(space, known.problem, problem).has_value());
  }
  if (near) {
    problems.push_back({std::move(problem), 0, std::move(label), {}, true});
  }
}

std::vector<SweepProblem> shapes_between(const Space& space, const std::vector<SweepProblem>& problems) {
  std::map<std::string, std::vector<Problem>> families;
  std::vector<SweepProblem> all;
  for (const SweepProblem& known : problems) {
    if (known.problem.kernel == space.kernel && !known.between) {
      families[varying_family_of(space, known.problem)].push_back(known.problem);
      all.push_back(known);
    }
  }
  const auto given = static_cast<std::ptrdiff_t>(all.size());
  for (auto& [text, family] : families) {
    add_family(space, std::move(family), all);
  }
  return {all.begin() + given, all.end()};
}

}  // namespace pascaline
