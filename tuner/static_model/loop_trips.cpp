#include "tuner/static_model/loop_trips.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "runtime/device/sm61/heaviest_path.hpp"

namespace pascaline {
namespace {

double loaded_bytes_of(const sm61::IssueCost& cost) {
  return static_cast<double>(cost.of(sm61::Space::global).loaded_bytes + cost.of(sm61::Space::generic).loaded_bytes);
}

double stored_bytes_of(const sm61::IssueCost& cost) {
  return static_cast<double>(cost.of(sm61::Space::global).stored_bytes + cost.of(sm61::Space::generic).stored_bytes);
}

// Once round by the heaviest path, with the loops inside or without.
sm61::IssueCost cost_of_loop(const sm61::KernelCode& kernel, std::size_t loop, bool own_only) {
  std::vector<std::uint32_t> path = sm61::heaviest_path(kernel, loop);
  std::erase_if(path, [&](std::uint32_t block) {
    return own_only && kernel.flow.blocks[block].loop != static_cast<std::int32_t>(loop);
  });
  return sm61::cost_of(kernel, path);
}

// The outermost loop around one; nothing if it is in no other.
std::optional<std::size_t> nest_of(const sm61::KernelCode& kernel, std::size_t loop) {
  std::optional<std::size_t> nest;
  for (auto around = parent_of(kernel, loop); around; around = parent_of(kernel, *around)) {
    nest = around;
  }
  return nest;
}

bool contains(const sm61::KernelCode& kernel, std::size_t outer, std::size_t loop) {
  return sm61::is_within(kernel.flow, kernel.flow.blocks[kernel.flow.loops[loop].header], outer);
}

// The hottest loop, and others of the same nest of loops, or beside it where it is in none, that are on the heaviest
// path and do a tenth as much arithmetic or more, loops inside included. None contains another.
std::vector<CountedLoop> hottest_group(const sm61::KernelCode& kernel) {
  constexpr double kWorthCounting = 0.1;
  const std::size_t hottest = *kernel.hottest;
  const auto nest = nest_of(kernel, hottest);
  std::vector<CountedLoop> group{{hottest, 1, cost_of_loop(kernel, hottest, false)}};
  const std::set<std::size_t> candidates = loops_on(kernel, sm61::heaviest_path(kernel, nest));
  // From the inside out: outer loops have lower numbers.
  for (auto loop = candidates.rbegin(); loop != candidates.rend(); ++loop) {
    const bool overlaps = std::any_of(group.begin(), group.end(), [&](const CountedLoop& counted) {
      return contains(kernel, *loop, counted.loop) || contains(kernel, counted.loop, *loop);
    });
    if (overlaps || (!nest && parent_of(kernel, *loop))) {
      continue;
    }
    CountedLoop other{*loop, 1, cost_of_loop(kernel, *loop, false)};
    if (other.cost.arithmetic() >= kWorthCounting * group.front().cost.arithmetic() && other.cost.arithmetic() > 0) {
      group.push_back(other);
    }
  }
  return group;
}

// The loops around those of a group, from the inside out.
std::set<std::size_t, std::greater<>> loops_around(const sm61::KernelCode& kernel,
                                                   const std::vector<CountedLoop>& group) {
  std::set<std::size_t, std::greater<>> around;
  for (const CountedLoop& counted : group) {
    for (auto loop = parent_of(kernel, counted.loop); loop; loop = parent_of(kernel, *loop)) {
      around.insert(*loop);
    }
  }
  return around;
}

bool is_only_loader(const sm61::KernelCode& kernel, const std::vector<CountedLoop>& group) {
  for (std::size_t i = 0; i < kernel.costs.size(); ++i) {
    const bool in_group = std::any_of(group.begin(), group.end(),
                                      [&](const CountedLoop& counted) { return contains(kernel, counted.loop, i); });
    if (!in_group && loaded_bytes_of(kernel.costs[i].own) > 0) {
      return false;
    }
  }
  return true;
}

double ratio(double value, double of) { return of > 0 ? value / of : 0; }

// How often a loop runs around one that runs `most` times.
double trips_around(const sm61::IssueCost& own, const LaunchWork& work, double most) {
  if (const double stored = stored_bytes_of(own); stored > 0 && work.output_bytes > 0) {
    return std::clamp(work.output_bytes / (stored * work.grid_threads), 1.0, most);
  }
  const double loaded = loaded_bytes_of(own);
  return loaded > 0 ? std::clamp(ratio(work.global_bytes, loaded * work.grid_threads), 1.0, most) : std::sqrt(most);
}

double trips_of_group(const sm61::KernelCode& kernel, const LaunchWork& work, const std::vector<CountedLoop>& group) {
  double flops = 0;
  double bytes = 0;
  for (const CountedLoop& counted : group) {
    flops += 2.0 * counted.cost.arithmetic();
    bytes += loaded_bytes_of(counted.cost);
  }
  const double by_flops = ratio(work.flops, flops * work.grid_threads);
  if (!is_only_loader(kernel, group)) {
    return by_flops;
  }
  // Bytes include those of partial results, so that a little more of them says nothing.
  constexpr double kWellMore = 1.5;
  const double by_bytes = ratio(work.global_bytes - work.output_bytes, bytes * work.grid_threads);
  return by_bytes > kWellMore * by_flops ? by_bytes : by_flops;
}

}  // namespace

std::set<std::size_t> loops_on(const sm61::KernelCode& kernel, const std::vector<std::uint32_t>& path) {
  std::set<std::size_t> loops;
  for (const std::uint32_t block : path) {
    if (const std::int32_t loop = kernel.flow.blocks[block].loop; loop != sm61::Block::kNone) {
      loops.insert(static_cast<std::size_t>(loop));
    }
  }
  return loops;
}

std::optional<std::size_t> parent_of(const sm61::KernelCode& kernel, std::size_t loop) {
  const std::int32_t parent = kernel.flow.loops[loop].parent;
  return parent == sm61::Block::kNone ? std::nullopt : std::optional(static_cast<std::size_t>(parent));
}

std::vector<CountedLoop> counted_loops(const sm61::KernelCode& kernel, const LaunchWork& work) {
  std::vector<CountedLoop> loops = hottest_group(kernel);
  const double trips = trips_of_group(kernel, work, loops);
  if (!(trips > 0)) {
    return {};
  }
  for (CountedLoop& counted : loops) {
    counted.trips = trips;
  }
  for (const std::size_t loop : loops_around(kernel, loops)) {
    double most = 1;
    for (const CountedLoop& inside : loops) {
      most = parent_of(kernel, inside.loop) == loop ? std::max(most, inside.trips) : most;
    }
    const sm61::IssueCost own = cost_of_loop(kernel, loop, true);
    loops.push_back({loop, trips_around(own, work, most), own, true});
  }
  return loops;
}

}  // namespace pascaline
