#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/fleet/slurm.hpp"
#include "tuner/fleet/attempts.hpp"
#include "tuner/fleet/fleet_file.hpp"

namespace pascaline::cli {

/// Shards that a host was given over ssh, into a folder of its own.
struct HostShards {
  std::string host;
  std::string folder;  ///< there; never read from a file (`folder_on_host`)
  std::vector<int> shards;
};

/// What `fleet submit` gave out: FOLDER/submissions.json. A host of it is asked nothing unless the command line names
/// it.
struct Submissions {
  std::vector<std::string> slurm_jobs;
  std::vector<HostShards> hosts;
};

/// Throws SpaceError if it is not what `fleet submit` writes.
[[nodiscard]] Submissions load_submissions(const std::filesystem::path& folder, const Fleet& fleet);
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

/// What is asked besides the folder itself.
struct FleetSources {
  bool local = false;              ///< neither Slurm nor hosts
  std::vector<std::string> hosts;  ///< that the command line names

  [[nodiscard]] bool asks(const HostShards& host) const;
};

/// `--ssh` and `--local`, of commands that ask hosts.
void add_source_options(CLI::App& command, FleetSources& sources);

/// Throws Error, saying what to give, if the fleet was given to hosts that are not to be asked, and neither is only the
/// folder.
void require_hosts_named(const std::string& folder, const Fleet& fleet, const FleetSources& sources);

/// All shards as they stand, from their attempts and the sources. What could not be asked is told in `notes`; shards of
/// hosts that the command line does not name are unknown.
[[nodiscard]] std::vector<ShardStatus> fleet_status(const std::string& folder, const Fleet& fleet,
                                                    const FleetSources& sources, std::vector<std::string>& notes);

/// Numbers of the shards that may be given out.
[[nodiscard]] std::vector<int> shards_to_give_out(const std::vector<ShardStatus>& shards);

}  // namespace pascaline::cli
