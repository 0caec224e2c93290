#include "tuner/fleet/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "core/util/hash.hpp"

namespace pascaline {
namespace {

// A trial on a card of Pascal, about: compiling, checking and what is around the launches; their number; a card's
// rates.
constexpr double kSecondsATrial = 0.3;
constexpr double kLaunches = 100;
constexpr double kFlopsPerSecond = 3e12;
constexpr double kBytesPerSecond = 2e11;
constexpr double kFinalsSeconds = 5;
// Without a limit of trials a search goes on as long as it finds anything: of problems all alike.
constexpr int kTrialsWithoutLimit = 1000;

const Space& space_of(const std::vector<Space>& spaces, const std::string& kernel) {
  const auto found = std::ranges::find_if(spaces, [&](const Space& space) { return space.kernel == kernel; });
  if (found == spaces.end()) {
    throw Error(fmt::format("there is no search space of kernel '{}'", kernel));
  }
  return *found;
}

// Octaves between two shapes of one kernel; nothing where they are not comparable.
std::optional<double> octaves_between(const Problem& a, const Problem& b) {
  if (a.kernel != b.kernel || a.types != b.types || a.dimensions.size() != b.dimensions.size()) {
    return std::nullopt;
  }
  double octaves = 0;
  for (std::size_t i = 0; i < a.dimensions.size(); ++i) {
    const auto size = [](std::int64_t value) {
      return std::log2(static_cast<double>(std::max<std::int64_t>(1, value)));
    };
    octaves += std::abs(size(a.dimensions[i].second) - size(b.dimensions[i].second));
  }
  return octaves;
}

// The shard with the nearest problem, the first of equals; the first if none is comparable.
std::size_t shard_near(const Problem& between, const std::vector<std::vector<SweepProblem>>& shards) {
  std::size_t nearest = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    for (const SweepProblem& problem : shards[shard]) {
      const auto octaves = problem.between ? std::nullopt : octaves_between(between, problem.problem);
      if (octaves && *octaves < least) {
        least = *octaves;
        nearest = shard;
      }
    }
  }
  return nearest;
}

}  // namespace

double expected_cost_s(const SweepProblem& problem, const Space& space, int trials) {
  const BoundSpace bound(space, problem.problem, DeviceLimits{});
  const double most = trials >= kUnlimitedTrials ? kTrialsWithoutLimit : trials;
  const double launch_s = bound.flops() / kFlopsPerSecond + bound.bytes() / kBytesPerSecond;
  return std::min(most, space.raw_size()) * (kSecondsATrial + kLaunches * launch_s) + kFinalsSeconds;
}

std::vector<std::vector<std::size_t>> partition(std::span<const double> costs, int count) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  std::vector<std::vector<std::size_t>> parts(static_cast<std::size_t>(count));
  std::vector<double> sums(parts.size(), 0);
  for (const std::size_t index : order) {
    const auto least = static_cast<std::size_t>(std::ranges::min_element(sums) - sums.begin());
    parts[least].push_back(index);
    sums[least] += costs[index];
  }
  for (std::vector<std::size_t>& part : parts) {
    std::ranges::sort(part);
  }
  return parts;
}

std::string fleet_id(std::span<const SweepProblem> problems, const SweepOptions& options, int count) {
  FieldHash hash;
  hash.add("fleet").add(std::to_string(count)).add(options.searcher).add(std::to_string(options.seed));
  hash.add(std::to_string(options.trials)).add(name_of(options.finals.objective.objective));
  for (const SweepProblem& problem : problems) {
    if (!problem.between) {
      hash.add(problem.problem.text()).add(fmt::format("{}", problem.count));
    }
  }
  return hash.hex().substr(0, 16);
}

DividedWork divide(std::span<const SweepProblem> problems, const std::vector<Space>& spaces,
                   const SweepOptions& options, int count) {
  std::vector<const SweepProblem*> to_tune;
  std::vector<double> costs;
  for (const SweepProblem& problem : problems) {
    if (!problem.between) {
      to_tune.push_back(&problem);
      costs.push_back(expected_cost_s(problem, space_of(spaces, problem.problem.kernel), options.trials));
    }
  }
  if (static_cast<std::size_t>(count) > to_tune.size()) {
    throw Error(
        fmt::format("{} are more than there is to divide: the plan has {}, and one is tuned on one machine; "
                    "give at most {}",
                    counted(count, "shard"), counted(to_tune.size(), "problem"), to_tune.size()));
  }
  DividedWork divided;
  divided.fleet = fleet_id(problems, options, count);
  for (const std::vector<std::size_t>& part : partition(costs, count)) {
    divided.shards.emplace_back();
    divided.expected_s.push_back(0);
    for (const std::size_t index : part) {
      divided.shards.back().push_back(*to_tune[index]);
      divided.expected_s.back() += costs[index];
    }
  }
  for (const SweepProblem& problem : problems) {
    if (problem.between) {
      divided.shards[shard_near(problem.problem, divided.shards)].push_back(problem);
    }
  }
  return divided;
}

}  // namespace pascaline
