#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/fleet/slurm.hpp"
#include "tuner/fleet/attempts.hpp"
#include "tuner/fleet/fleet_file.hpp"

namespace pascaline::cli {

/// Shards that a host was given over ssh, into a folder of its own.
struct HostShards {
  std::string host;
  std::string folder;  ///< there
  std::vector<int> shards;
};

/// What `fleet submit` gave out: FOLDER/submissions.json.
struct Submissions {
  std::vector<std::string> slurm_jobs;
  std::vector<HostShards> hosts;
};

[[nodiscard]] Submissions load_submissions(const std::filesystem::path& folder);
void save_submissions(const std::filesystem::path& folder, const Submissions& submissions);

/// How a shard stands.
struct ShardStatus {
  int shard = 0;
  std::string state;  ///< waiting, queued, running, done, interrupted, failed, lost, unknown
  int attempts = 0;
  std::string where;  ///< host and process, or Slurm's job
  std::string note;
  double age_s = -1;  ///< since its last sign of life; below 0: none
};

/// All shards as they stand, from their attempts, Slurm and, unless `local`, the hosts that were given some. What could
/// not be asked is told in `notes`.
[[nodiscard]] std::vector<ShardStatus> fleet_status(const std::string& folder, const Fleet& fleet, bool local,
                                                    std::vector<std::string>& notes);

/// Numbers of the shards that may be given out.
[[nodiscard]] std::vector<int> shards_to_give_out(const std::vector<ShardStatus>& shards);

}  // namespace pascaline::cli
