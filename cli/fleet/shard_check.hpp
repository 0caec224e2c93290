#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tuner/fleet/fleet_file.hpp"

namespace pascaline::cli {

/// What a gather takes although it is not as it should be.
struct Accepted {
  bool clock = false;
  bool versions = false;
};

/// What a database holds of a fleet.
struct ShardDatabase {
  std::filesystem::path file;
  int shard = 0;          ///< 0: none of this fleet
  std::string refusal;    ///< why it is left out; empty: it is not
  bool finished = false;  ///< its sweep came to the end
  bool running = false;   ///< it is being written
  std::int64_t trials = 0;
  std::int64_t decided = 0;  ///< problems with a winner
  std::int64_t started_unix_ms = 0;
};

/// Looks at a database: which shard it is, how far it came, and whether anything speaks against taking it (another
/// fleet or number of shards, another version of the program or of a kernel, a clock that is hours off, damage). Never
/// throws for what the file holds.
[[nodiscard]] ShardDatabase look_at_shard(const std::filesystem::path& file, const Fleet& fleet,
                                          const Accepted& accepted);

/// Of several databases of each shard the one that holds most is kept, the others get a refusal that says so.
void keep_fullest(std::vector<ShardDatabase>& databases);

}  // namespace pascaline::cli
