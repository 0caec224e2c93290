#include "core/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kMaxProblems = 100'000;

using Types = std::vector<std::pair<std::string, ElementType>>;

[[noreturn]] void fail(const Workload& workload, std::size_t entry, const std::string& below,
                       const std::string& problem) {
  throw SpaceError(workload.file, fmt::format("/entries/{}{}", entry, below), problem);
}

// Steps `digits` to the next combination with digits[i] < sizes[i], the last the fastest; false after the last one.
bool advance(std::vector<std::size_t>& digits, const std::vector<std::size_t>& sizes) {
  for (std::size_t i = digits.size(); i-- > 0;) {
    if (++digits[i] < sizes[i]) {
      return true;
    }
    digits[i] = 0;
  }
  return false;
}

// None if it follows another variable.
std::vector<ElementType> types_of(const Workload& workload, const TypeVariable& variable) {
  const auto given = std::find_if(workload.types.begin(), workload.types.end(),
                                  [&](const auto& entry) { return entry.first == variable.name; });
  if (given == workload.types.end()) {
    return variable.like ? std::vector<ElementType>{} : std::vector{variable.allowed.front()};
  }
  std::vector<ElementType> both;
  std::copy_if(given->second.begin(), given->second.end(), std::back_inserter(both), [&](ElementType type) {
    return std::find(variable.allowed.begin(), variable.allowed.end(), type) != variable.allowed.end();
  });
  if (both.empty()) {
    throw SpaceError(workload.file, "/types/" + variable.name,
                     "names no element type that this kernel's search space allows");
  }
  return both;
}

// For each of the space's type variables those it may have; none if it follows another variable.
std::vector<std::vector<ElementType>> type_choices(const Workload& workload, const Space& space) {
  std::vector<std::vector<ElementType>> choices;
  std::transform(space.types.begin(), space.types.end(), std::back_inserter(choices),
                 [&](const TypeVariable& variable) { return types_of(workload, variable); });
  return choices;
}

// Every assignment of element types to the space's type variables; counted before any is made.
std::vector<Types> type_combinations(const Workload& workload, const Space& space,
                                     const std::vector<std::vector<ElementType>>& choices) {
  std::vector<std::size_t> sizes;
  std::size_t total = 1;
  for (const std::vector<ElementType>& choice : choices) {
    sizes.push_back(std::max<std::size_t>(1, choice.size()));
    total = std::min(total * sizes.back(), kMaxProblems + 1);
  }
  if (total > kMaxProblems) {
    throw SpaceError(workload.file, "/types",
                     fmt::format("with these element types the workload has more than {} problems of kernel '{}'; give "
                                 "its type variables fewer of them",
                                 kMaxProblems, space.kernel));
  }
  std::vector<Types> combinations;
  std::vector<std::size_t> digits(sizes.size(), 0);
  do {
    Types& types = combinations.emplace_back();
    for (std::size_t i = 0; i < digits.size(); ++i) {
      types.emplace_back(space.types[i].name,
                         choices[i].empty() ? space.default_type(i, types) : choices[i][digits[i]]);
    }
  } while (advance(digits, sizes));
  return combinations;
}

// The types of an entry that has its own; what it leaves out is as the space has it.
Types own_types(const Workload& workload, std::size_t index, const Space& space) {
  const WorkloadEntry& entry = workload.entries[index];
  for (const auto& [name, type] : entry.types) {
    const auto variable = std::find_if(space.types.begin(), space.types.end(),
                                       [&key = name](const TypeVariable& known) { return known.name == key; });
    if (variable == space.types.end()) {
      fail(workload, index, "/types/" + name, fmt::format("kernel '{}' has no such type variable", space.kernel));
    }
    if (std::find(variable->allowed.begin(), variable->allowed.end(), type) == variable->allowed.end()) {
      fail(workload, index, "/types/" + name,
           fmt::format("kernel '{}' does not exist for {}", space.kernel, name_of(type)));
    }
  }
  Types types;
  for (std::size_t i = 0; i < space.types.size(); ++i) {
    const auto given = std::find_if(entry.types.begin(), entry.types.end(),
                                    [&](const auto& own) { return own.first == space.types[i].name; });
    types.emplace_back(space.types[i].name, given == entry.types.end() ? space.default_type(i, types) : given->second);
  }
  return types;
}

// The value of the dimension after `earlier`, which the entry leaves out.
std::int64_t default_of(const Workload& workload, std::size_t index, const Space& space,
                        const std::vector<std::pair<std::string, std::int64_t>>& earlier) {
  const Dimension& dimension = space.dimensions[earlier.size()];
  if (!dimension.default_value) {
    fail(workload, index, "/dimensions",
         fmt::format("gives no value for dimension {} of kernel '{}'", dimension.name, space.kernel));
  }
  std::int64_t value = 0;
  try {
    value = space.default_dimension(earlier.size(), earlier);
  } catch (const Error& error) {
    fail(workload, index, "/dimensions",
         fmt::format("the default of dimension {} of kernel '{}' has no value: {}; give one", dimension.name,
                     space.kernel, error.what()));
  }
  if (value < dimension.minimum || value > dimension.maximum) {
    fail(workload, index, "/dimensions",
         fmt::format("the default of dimension {} of kernel '{}' is {}, outside its range of {} to {}; give one",
                     dimension.name, space.kernel, value, dimension.minimum, dimension.maximum));
  }
  return value;
}

// The entry's dimensions in the space's order, with the phase's symbols at `values`.
std::vector<std::pair<std::string, std::int64_t>> dimensions_of(const Workload& workload, std::size_t index,
                                                                const Space& space,
                                                                const std::vector<std::int64_t>& values) {
  const WorkloadEntry& entry = workload.entries[index];
  for (const auto& [name, ignored] : entry.dimensions) {
    if (std::none_of(space.dimensions.begin(), space.dimensions.end(),
                     [&key = name](const Dimension& dimension) { return dimension.name == key; })) {
      fail(workload, index, "/dimensions/" + name, fmt::format("kernel '{}' has no such dimension", space.kernel));
    }
  }
  std::vector<std::pair<std::string, std::int64_t>> dimensions;
  for (const Dimension& dimension : space.dimensions) {
    const auto given = std::find_if(entry.dimensions.begin(), entry.dimensions.end(),
                                    [&](const auto& candidate) { return candidate.first == dimension.name; });
    if (given == entry.dimensions.end()) {
      dimensions.emplace_back(dimension.name, default_of(workload, index, space, dimensions));
      continue;
    }
    const auto value = given->second.try_evaluate(values);
    if (!value || *value < dimension.minimum || *value > dimension.maximum) {
      fail(workload, index, "/dimensions/" + dimension.name,
           fmt::format("'{}' is {}, outside the dimension's range of {} to {}", given->second.text(),
                       value ? fmt::format("{}", *value) : "without a value", dimension.minimum, dimension.maximum));
    }
    dimensions.emplace_back(dimension.name, *value);
  }
  return dimensions;
}

bool wanted(const WorkloadEntry& entry, const Space& space, const WorkloadSelection& selection) {
  return entry.kernel == space.kernel && (selection.alternatives || entry.alternative_of.empty());
}

// Index of a problem by its text.
using Twins = std::unordered_map<std::string, std::size_t>;

void merge(std::vector<WorkloadProblem>& problems, Twins& twins, WorkloadProblem&& problem) {
  const auto [twin, is_new] = twins.try_emplace(problem.problem.text(), problems.size());
  if (is_new) {
    problems.push_back(std::move(problem));
    return;
  }
  problems[twin->second].count += problem.count;
  problems[twin->second].names += ", " + problem.names;
}

// Appends the problems of one phase at one value of its symbols.
void expand_at(const Workload& workload, std::size_t phase, const std::vector<std::int64_t>& values, const Space& space,
               const std::vector<Types>& types, const WorkloadSelection& selection,
               std::vector<WorkloadProblem>& problems) {
  Twins twins;
  std::vector<std::pair<std::string, std::int64_t>> symbols;
  for (std::size_t i = 0; i < values.size(); ++i) {
    symbols.emplace_back(workload.phases[phase].symbols[i].first, values[i]);
  }
  for (std::size_t i = 0; i < workload.entries.size(); ++i) {
    const WorkloadEntry& entry = workload.entries[i];
    if (entry.phase != phase || !wanted(entry, space, selection)) {
      continue;
    }
    const auto dimensions = dimensions_of(workload, i, space, values);
    const std::vector<Types> own = entry.types.empty() ? types : std::vector<Types>(1, own_types(workload, i, space));
    for (const Types& combination : own) {
      merge(problems, twins,
            {{space.kernel, dimensions, combination}, entry.count, workload.phases[phase].name, entry.name, symbols});
    }
  }
}

// Before any is made: a few symbols of many values each have more combinations than there is memory for.
void check_size(const Workload& workload, std::size_t phase, const Space& space, std::size_t types,
                const WorkloadSelection& selection, std::size_t& total) {
  std::size_t problems = 0;
  for (const WorkloadEntry& entry : workload.entries) {
    if (entry.phase == phase && wanted(entry, space, selection)) {
      problems += entry.types.empty() ? types : 1;
    }
  }
  std::size_t combinations = 1;
  for (const auto& [name, values] : workload.phases[phase].symbols) {
    combinations = std::min(combinations * values.size(), kMaxProblems + 1);
  }
  total += std::min(problems, kMaxProblems + 1) * combinations;
  if (total > kMaxProblems) {
    throw SpaceError(workload.file, fmt::format("/phases/{}", phase),
                     fmt::format("with phase '{}' the workload has more than {} problems of kernel '{}'; give its "
                                 "symbols fewer values",
                                 workload.phases[phase].name, kMaxProblems, space.kernel));
  }
}

// Whether the phase is asked for and calls the kernel: of another one's symbols not even the values are gone through.
bool has_work(const Workload& workload, std::size_t phase, const Space& space, const WorkloadSelection& selection) {
  const std::vector<std::string>& asked = selection.phases;
  return (asked.empty() || std::find(asked.begin(), asked.end(), workload.phases[phase].name) != asked.end()) &&
         std::any_of(workload.entries.begin(), workload.entries.end(), [&](const WorkloadEntry& entry) {
           return entry.phase == phase && wanted(entry, space, selection);
         });
}

void check_phases(const Workload& workload, const WorkloadSelection& selection) {
  for (const std::string& name : selection.phases) {
    if (std::none_of(workload.phases.begin(), workload.phases.end(),
                     [&](const WorkloadPhase& phase) { return phase.name == name; })) {
      std::vector<std::string> known;
      std::transform(workload.phases.begin(), workload.phases.end(), std::back_inserter(known),
                     [](const WorkloadPhase& phase) { return phase.name; });
      throw Error(
          fmt::format("workload '{}' has no phase '{}'; it has {}", workload.name, name, fmt::join(known, ", ")));
    }
  }
}

}  // namespace

std::vector<WorkloadProblem> expand(const Workload& workload, const Space& space, const WorkloadSelection& selection) {
  check_phases(workload, selection);
  std::vector<WorkloadProblem> problems;
  if (std::none_of(workload.entries.begin(), workload.entries.end(),
                   [&](const WorkloadEntry& entry) { return wanted(entry, space, selection); })) {
    return problems;
  }
  const std::vector<std::vector<ElementType>> choices = type_choices(workload, space);
  std::vector<Types> types;
  if (std::any_of(workload.entries.begin(), workload.entries.end(),
                  [&](const WorkloadEntry& entry) { return entry.types.empty() && wanted(entry, space, selection); })) {
    types = type_combinations(workload, space, choices);
  }
  std::size_t total = 0;
  for (std::size_t p = 0; p < workload.phases.size(); ++p) {
    if (has_work(workload, p, space, selection)) {
      check_size(workload, p, space, types.size(), selection, total);
    }
  }
  for (std::size_t p = 0; p < workload.phases.size(); ++p) {
    const WorkloadPhase& phase = workload.phases[p];
    if (!has_work(workload, p, space, selection)) {
      continue;
    }
    std::vector<std::size_t> sizes;
    for (const auto& [name, values] : phase.symbols) {
      sizes.push_back(values.size());
    }
    std::vector<std::size_t> digits(sizes.size(), 0);
    do {
      std::vector<std::int64_t> values;
      for (std::size_t i = 0; i < digits.size(); ++i) {
        values.push_back(phase.symbols[i].second[digits[i]]);
      }
      expand_at(workload, p, values, space, types, selection, problems);
    } while (advance(digits, sizes));
  }
  return problems;
}

}  // namespace pascaline
