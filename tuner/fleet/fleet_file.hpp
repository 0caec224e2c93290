#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "db/sweep_plan.hpp"
#include "tuner/fleet/shard.hpp"

namespace pascaline {

/// A part of a fleet's plan.
struct FleetShard {
  double expected_s = 0;                 ///< to weigh it against the others (expected_cost_s)
  std::vector<PlannedProblem> problems;  ///< with 0 calls: a shape in between
};

/// A sweep that is divided among machines: FOLDER/fleet.json (docs/fleet.md describes the file).
struct Fleet {
  std::string id;
  std::int64_t planned_unix_ms = 0;
  std::string program;                                       ///< version that planned it
  std::vector<std::pair<std::string, std::string>> options;  ///< of `pascaline sweep`; an empty value: it takes none
  double budget_s = 0;                                       ///< of a card; 0: no limit
  std::vector<PlannedKernel> kernels;                        ///< as their files were
  std::vector<FleetShard> shards;

  [[nodiscard]] int count() const noexcept { return static_cast<int>(shards.size()); }
  [[nodiscard]] ShardIdentity identity(int shard) const { return {id, {shard, count()}}; }
};

/// FOLDER/fleet.json
[[nodiscard]] std::filesystem::path fleet_file(const std::filesystem::path& folder);
/// Database of a shard, beside it: shard-0001.db.
[[nodiscard]] std::filesystem::path shard_database(const std::filesystem::path& folder, int shard);

[[nodiscard]] std::string fleet_text(const Fleet& fleet);
/// Reads and checks a file; throws SpaceError naming it and the place in it.
[[nodiscard]] Fleet load_fleet(const std::filesystem::path& file);

}  // namespace pascaline
