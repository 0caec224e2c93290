#include "tuner/bundle/bundle_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/util/hash.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kMaxSingly = 8192;
constexpr std::int64_t kAllBelow = 1024;
constexpr int kPlacesAnOctave = 64;
constexpr std::int64_t kInARow = 16;

// Constraints over the problem alone: where one fails, no configuration is valid.
bool possible(const BoundSpace& bound) {
  const auto parameters = static_cast<int>(bound.space().parameters.size());
  return std::all_of(bound.space().constraints.begin(), bound.space().constraints.end(), [&](const Constraint& one) {
    const auto& used = one.require.used_slots();
    return std::any_of(used.begin(), used.end(), [&](int slot) { return slot < parameters; }) ||
           one.require.try_evaluate(bound.base_slots()).value_or(0) != 0;
  });
}

/// Plans problems of one kernel and keeps what code they need.
class CodeCollector {
 public:
  CodeCollector(const TunedKernel& kernel, const std::vector<ToolkitRow>& here, const DeviceLimits& limits)
      : kernel_(kernel), here_(here), limits_(limits) {}

  /// A problem that was asked for.
  void add(const Problem& problem) {
    try {
      const BoundSpace bound(kernel_.space, problem, limits_);
      keep(bound, make_plan(kernel_, here_, bound));
      Plan untuned = plan_untuned(bound, {}, {});
      untuned.toolkit = here_.front();
      keep(bound, untuned);
    } catch (const StoppedError&) {
      throw;
    } catch (const Error& error) {
      result_.unplanned.push_back(fmt::format("{}: {}", problem.text(), error.what()));
    }
    count(problem);
  }

  /// A problem that may come up. One that cannot be run is no fault.
  void add_possible(const Problem& problem) {
    if (!count(problem)) {
      return;
    }
    try {
      const BoundSpace bound(kernel_.space, problem, limits_);
      if (possible(bound)) {
        keep(bound, make_plan(kernel_, here_, bound));
      }
    } catch (const StoppedError&) {
      throw;
    } catch (const Error&) {
      --result_.problems;
    }
  }

  [[nodiscard]] PlannedCodes take() { return std::move(result_); }

 private:
  bool count(const Problem& problem) {
    std::vector<std::int64_t> key;
    for (const auto& [name, value] : problem.dimensions) {
      key.push_back(value);
    }
    for (const auto& [name, type] : problem.types) {
      key.push_back(static_cast<std::int64_t>(type));
    }
    const bool is_new = seen_.insert(std::move(key)).second;
    result_.problems += is_new ? 1 : 0;
    return is_new;
  }

  void keep(const BoundSpace& bound, const Plan& plan) {
    FieldHash key;
    key.add(plan.toolkit.compiler).add(plan.toolkit.version);
    for (const std::string& define : bound.defines(plan.config)) {
      key.add(define);
    }
    key.add("");
    for (const std::string& option : bound.options(plan.config)) {
      key.add(option);
    }
    if (keys_.insert(key.hex()).second) {
      result_.codes.push_back({bound.problem(), plan.config, plan.toolkit});
    }
  }

  const TunedKernel& kernel_;
  const std::vector<ToolkitRow>& here_;
  const DeviceLimits& limits_;
  std::set<std::vector<std::int64_t>> seen_;
  std::set<std::string> keys_;
  PlannedCodes result_;
};

using Group = std::vector<const Problem*>;

// Problems alike in types and in the dimensions that do not vary.
std::vector<Group> groups_of(const Space& space, std::span<const Problem> problems) {
  std::map<std::pair<std::vector<std::pair<std::string, ElementType>>, std::vector<std::int64_t>>, Group> groups;
  for (const Problem& problem : problems) {
    std::vector<std::int64_t> constant;
    for (std::size_t i = 0; i < space.dimensions.size(); ++i) {
      if (!space.dimensions[i].varies) {
        constant.push_back(problem.dimensions[i].second);
      }
    }
    groups[{problem.types, constant}].push_back(&problem);
  }
  std::vector<Group> result;
  for (auto& [key, group] : groups) {
    result.push_back(std::move(group));
  }
  return result;
}

// Every size of the dimensions `together`, the others as in `problem`.
void walk(Problem problem, const std::vector<std::size_t>& together, const std::vector<std::int64_t>& sizes,
          CodeCollector& collector) {
  for (const std::int64_t size : sizes) {
    for (const std::size_t dimension : together) {
      problem.dimensions[dimension].second = size;
    }
    collector.add_possible(problem);
  }
}

// Sizes are walked up to so many times the largest that was seen: longer prompts and larger images will come.
constexpr std::int64_t kBeyond = 4;
// Of a size that was seen at its least only, such as one image in a prompt, a few larger ones are to be expected.
constexpr std::int64_t kFewMore[] = {1, 2, 4};

std::vector<Problem> with_larger(const Space& space, const Group& group) {
  std::vector<Problem> result;
  for (const Problem* problem : group) {
    result.push_back(*problem);
  }
  for (std::size_t d = 0; d < space.dimensions.size(); ++d) {
    const Dimension& dimension = space.dimensions[d];
    const bool at_least = std::all_of(group.begin(), group.end(), [&](const Problem* problem) {
      return problem->dimensions[d].second == dimension.minimum;
    });
    for (const std::int64_t more : kFewMore) {
      if (!dimension.varies || !at_least || dimension.minimum + more > dimension.maximum) {
        break;
      }
      for (const Problem* problem : group) {
        result.push_back(*problem);
        result.back().dimensions[d].second += more;
      }
    }
  }
  return result;
}

void walk_group(const Space& space, const Group& seen, CodeCollector& collector) {
  const std::vector<Problem> group = with_larger(space, seen);
  for (std::size_t d = 0; d < space.dimensions.size(); ++d) {
    const Dimension& dimension = space.dimensions[d];
    if (!dimension.varies) {
      continue;
    }
    std::int64_t most = dimension.maximum <= kSmallMaximum ? dimension.maximum : dimension.minimum;
    for (const Problem& problem : group) {
      most = std::max(most, problem.dimensions[d].second);
    }
    most = most > dimension.maximum / kBeyond ? dimension.maximum : kBeyond * most;
    const std::vector<std::int64_t> sizes = sizes_up_to(dimension.minimum, most);
    for (const Problem& problem : group) {
      walk(problem, {d}, sizes, collector);
      std::vector<std::size_t> together{d};
      for (std::size_t e = 0; e < space.dimensions.size(); ++e) {
        if (e != d && space.dimensions[e].varies && problem.dimensions[e].second == problem.dimensions[d].second) {
          together.push_back(e);
        }
      }
      if (together.size() > 1) {
        walk(problem, together, sizes, collector);
      }
    }
  }
}

}  // namespace

std::vector<std::int64_t> sizes_up_to(std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> sizes;
  const bool singly = most - least < kMaxSingly;
  const std::int64_t single_end = singly ? most : std::max(least, kAllBelow);
  for (std::int64_t size = least; size <= single_end; ++size) {
    sizes.push_back(size);
  }
  for (int place = 0; !singly && sizes.back() < most; ++place) {
    const auto begin = static_cast<std::int64_t>(static_cast<double>(single_end) *
                                                 std::exp2(static_cast<double>(place) / kPlacesAnOctave));
    for (std::int64_t size = std::max(begin, sizes.back() + 1); size < begin + kInARow && size <= most; ++size) {
      sizes.push_back(size);
    }
    if (begin > most) {
      sizes.push_back(most);
    }
  }
  return sizes;
}

PlannedCodes plan_codes(const TunedKernel& kernel, const std::vector<ToolkitRow>& here, const DeviceLimits& limits,
                        std::span<const Problem> problems, bool all_sizes) {
  CodeCollector collector(kernel, here, limits);
  for (const Problem& problem : problems) {
    collector.add(problem);
  }
  if (all_sizes) {
    for (const Group& group : groups_of(kernel.space, problems)) {
      walk_group(kernel.space, group, collector);
    }
  }
  return collector.take();
}

void share_products(std::vector<Problem>& matmul, std::vector<Problem>& matvec, const Space& matvec_space) {
  const auto rows = [](Problem& problem) -> std::int64_t& { return problem.dimensions.front().second; };
  // What only matmul does (norms, rotation) is a dimension of it alone, 0 where it is not asked for.
  const auto is_of_matvec = [&](const std::pair<std::string, std::int64_t>& dimension) {
    return std::ranges::any_of(matvec_space.dimensions,
                               [&](const Dimension& known) { return known.name == dimension.first; });
  };
  const std::vector<Problem> few = matvec;
  std::int64_t most = 0;
  for (Problem problem : matmul) {
    most = std::max(most, rows(problem));
    if (std::ranges::any_of(problem.dimensions,
                            [&](const auto& dimension) { return !is_of_matvec(dimension) && dimension.second != 0; })) {
      continue;
    }
    std::erase_if(problem.dimensions, [&](const auto& dimension) { return !is_of_matvec(dimension); });
    problem.kernel = matvec_space.kernel;
    rows(problem) = std::min(rows(problem), matvec_space.dimensions.front().maximum);
    matvec.push_back(std::move(problem));
  }
  const Problem form = matmul.empty() ? Problem{} : matmul.front();
  for (Problem problem : few) {
    if (most > 0) {
      problem.kernel = form.kernel;
      for (const auto& dimension : form.dimensions) {
        if (!is_of_matvec(dimension)) {
          problem.dimensions.emplace_back(dimension.first, 0);
        }
      }
      rows(problem) = most;
      matmul.push_back(std::move(problem));
    }
  }
}

}  // namespace pascaline
