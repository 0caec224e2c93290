#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/space/space.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline {

/// Seconds that a problem, or the part of its space that it names, is expected to take on a card, whatever card that
/// is: that part of so many trials (no more than it has combinations), each compiled and launched some hundred times,
/// and finals. It looks at nothing but plan and space, so that every machine divides a plan in the same way; it weighs
/// problems against each other and promises no hours. Throws Error if the problem does not fit the space.
[[nodiscard]] double expected_cost_s(const SweepProblem& problem, const Space& space, int trials);

/// Divides costs among `count` shards: the largest first, each to the shard that has the least so far (longest
/// processing time first: no shard has more than 4/3 of the best possible maximum; Graham 1969), of equals to the
/// first. Returns the indices of each shard in ascending order. Each index is in exactly one. A shard is empty only if
/// there are fewer costs than shards. `groups` says for each cost which others may not be in one shard with it: those
/// of the same number, at most `count`; empty: any may.
[[nodiscard]] std::vector<std::vector<std::size_t>> partition(std::span<const double> costs, int count,
                                                              std::span<const std::size_t> groups = {});

/// The fleet's name (FleetWhole::id), of the problems without shapes in between.
[[nodiscard]] std::string fleet_id(std::span<const SweepProblem> problems, const SweepOptions& options, int count);

/// A search of fewer trials learns too little for what dividing it saves.
inline constexpr int kMinTrialsOfAPart = 20;

/// A sweep's problems, divided.
struct DividedWork {
  std::string fleet;
  std::vector<std::vector<SweepProblem>> shards;  ///< in the plan's order each
  std::vector<double> expected_s;                 ///< of each, without its shapes in between
};

/// Divides problems among `count` shards by their expected cost. Where some would take longer than a shard's share of
/// the whole, their spaces are divided into parts (SweepProblem::part) of at least `kMinTrialsOfAPart` trials, for
/// several shards, if that makes the longest shard shorter by a tenth. A shape in between goes where the nearest
/// problem of its kernel and types is, as it is tuned from what is known there. Throws Error if there are more shards
/// than problems and parts of them, or a problem's kernel has no space.
[[nodiscard]] DividedWork divide(std::span<const SweepProblem> problems, const std::vector<Space>& spaces,
                                 const SweepOptions& options, int count);

}  // namespace pascaline
