#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/file_words.hpp"
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
  std::string program;                 ///< version that planned it
  OptionWords options;                 ///< of `pascaline sweep`; such as a file may give (FileOptions)
  OptionWords paths{};                 ///< options with paths that it was planned with: to be shown, never opened
  double budget_s = 0;                 ///< of a card; 0: no limit
  std::vector<PlannedKernel> kernels;  ///< as their files were
  std::vector<FleetShard> shards;

  [[nodiscard]] int count() const noexcept { return static_cast<int>(shards.size()); }
  [[nodiscard]] ShardIdentity identity(int shard) const { return {id, {shard, count()}}; }
};

/// FOLDER/fleet.json
[[nodiscard]] std::filesystem::path fleet_file(const std::filesystem::path& folder);
/// Database of a shard, beside it: shard-0001.db.
[[nodiscard]] std::filesystem::path shard_database(const std::filesystem::path& folder, int shard);

/// A file of a fleet's folder is none of its own.
class ForeignFileError : public Error {
 public:
  using Error::Error;
};

/// Throws ForeignFileError if one of the shard's files (database, log, output) is anything but a plain file of the
/// folder, or not there yet: a link in a stranger's folder would have another file written over.
void require_own_files(const std::filesystem::path& folder, int shard);
/// The same of everything in a folder with what was fetched, and of the folder itself.
void require_own_folder(const std::filesystem::path& folder);

/// The id that the plan's problems, shards and options give it.
[[nodiscard]] std::string id_of(const Fleet& fleet);

[[nodiscard]] std::string fleet_text(const Fleet& fleet);
/// Reads a file and checks it as what a stranger may have written; throws SpaceError naming it and the place in it.
[[nodiscard]] Fleet load_fleet(const std::filesystem::path& file);

}  // namespace pascaline
