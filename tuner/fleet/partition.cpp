#include "tuner/fleet/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>

#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "tuner/fleet/shard.hpp"

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
// Problems are shared among shards if the longest then takes no more than this of what it took.
constexpr double kWorthDividing = 0.9;

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

// What shards are made of: problems, and parts of such as several share.
struct Pieces {
  std::vector<SweepProblem> problems;
  std::vector<double> costs;
  std::vector<std::size_t> origins;  // of each the number of its problem in the plan
};

Pieces pieces_of(std::span<const SweepProblem> problems, const std::vector<Space>& spaces, int trials,
                 const std::vector<int>& parts) {
  Pieces pieces;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    for (int part = 1; part <= parts[i]; ++part) {
      SweepProblem piece = problems[i];
      piece.part = {part, parts[i]};
      pieces.costs.push_back(expected_cost_s(piece, space_of(spaces, piece.problem.kernel), trials));
      pieces.problems.push_back(std::move(piece));
      pieces.origins.push_back(i);
    }
  }
  return pieces;
}

// Parts that each problem's space would be divided into for no part to take longer than a shard's share.
std::vector<int> wanted_parts(const Pieces& whole, const std::vector<Space>& spaces, int trials, int count) {
  const double share = std::accumulate(whole.costs.begin(), whole.costs.end(), 0.0) / count / kWorthDividing;
  std::vector<int> parts;
  for (std::size_t i = 0; i < whole.costs.size(); ++i) {
    const double size = space_of(spaces, whole.problems[i].problem.kernel).raw_size();
    const double most =
        std::min(std::min(size, static_cast<double>(trials)) / kMinTrialsOfAPart, static_cast<double>(count));
    parts.push_back(std::max(1, static_cast<int>(std::min(std::ceil(whole.costs[i] / share), std::floor(most)))));
  }
  return parts;
}

double sum_of(std::span<const double> costs, const std::vector<std::size_t>& part) {
  return std::accumulate(part.begin(), part.end(), 0.0,
                         [&](double sum, std::size_t index) { return sum + costs[index]; });
}

double longest(std::span<const double> costs, const std::vector<std::vector<std::size_t>>& parts) {
  double most = 0;
  for (const std::vector<std::size_t>& part : parts) {
    most = std::max(most, sum_of(costs, part));
  }
  return most;
}

}  // namespace

double expected_cost_s(const SweepProblem& problem, const Space& space, int trials) {
  const BoundSpace bound(space, problem.problem, DeviceLimits{});
  const double most = problem.part.share_of(trials >= kUnlimitedTrials ? kTrialsWithoutLimit : trials);
  const double launch_s = bound.flops() / kFlopsPerSecond + bound.bytes() / kBytesPerSecond;
  return std::min(most, space.raw_size() / problem.part.count) * (kSecondsATrial + kLaunches * launch_s) +
         kFinalsSeconds;
}

std::vector<std::vector<std::size_t>> partition(std::span<const double> costs, int count,
                                                std::span<const std::size_t> groups) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  std::vector<std::vector<std::size_t>> parts(static_cast<std::size_t>(count));
  std::vector<double> sums(parts.size(), 0);
  for (const std::size_t index : order) {
    const auto is_free = [&](std::size_t part) {
      return groups.empty() ||
             std::ranges::none_of(parts[part], [&](std::size_t other) { return groups[other] == groups[index]; });
    };
    std::optional<std::size_t> least;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      if ((!least || sums[part] < sums[*least]) && is_free(part)) {
        least = part;
      }
    }
    parts[least.value()].push_back(index);
    sums[*least] += costs[index];
  }
  for (std::vector<std::size_t>& part : parts) {
    std::ranges::sort(part);
  }
  return parts;
}

std::string fleet_id(std::span<const SweepProblem> problems, const SweepOptions& options, int count) {
  FleetWhole whole{options.search.searcher, options.search.seed, options.trials,
                   std::string(name_of(options.finals.objective.objective)), count};
  for (const SweepProblem& problem : problems) {
    if (!problem.between) {
      whole.add(problem.problem.text(), problem.count);
    }
  }
  return whole.id();
}

DividedWork divide(std::span<const SweepProblem> problems, const std::vector<Space>& spaces,
                   const SweepOptions& options, int count) {
  std::vector<SweepProblem> to_tune;
  std::ranges::copy_if(problems, std::back_inserter(to_tune),
                       [](const SweepProblem& problem) { return !problem.between; });
  const Pieces whole = pieces_of(to_tune, spaces, options.trials, std::vector<int>(to_tune.size(), 1));
  const Pieces divided = pieces_of(to_tune, spaces, options.trials, wanted_parts(whole, spaces, options.trials, count));
  if (static_cast<std::size_t>(count) > divided.problems.size()) {
    throw Error(fmt::format(
        "{} are more than there is to divide: the plan has {}, and a problem is shared only in parts of {} trials or "
        "more; "
        "give at most {}",
        counted(count, "shard"), counted(to_tune.size(), "problem"), kMinTrialsOfAPart, divided.problems.size()));
  }
  const auto parts_of_whole = partition(whole.costs, count);
  const auto parts_of_divided = partition(divided.costs, count, divided.origins);
  const bool is_worth_it =
      static_cast<std::size_t>(count) > to_tune.size() ||
      longest(divided.costs, parts_of_divided) < kWorthDividing * longest(whole.costs, parts_of_whole);
  DividedWork work;
  work.fleet = fleet_id(problems, options, count);
  const Pieces& pieces = is_worth_it ? divided : whole;
  for (const std::vector<std::size_t>& part : is_worth_it ? parts_of_divided : parts_of_whole) {
    work.shards.emplace_back();
    for (const std::size_t index : part) {
      work.shards.back().push_back(pieces.problems[index]);
    }
    work.expected_s.push_back(sum_of(pieces.costs, part));
  }
  for (const SweepProblem& problem : problems) {
    if (problem.between) {
      work.shards[shard_near(problem.problem, work.shards)].push_back(problem);
    }
  }
  return work;
}

}  // namespace pascaline
