#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "db/process_identity.hpp"
#include "tuner/fleet/fleet_file.hpp"

namespace pascaline {

/// How an attempt at a shard ended, or that it goes on.
enum class AttemptState : std::uint8_t { running, done, interrupted, failed };
[[nodiscard]] std::string_view name_of(AttemptState state);

/// What one process makes of a shard: FOLDER/shard-0001.attempt-1.json. Who makes the file with the next number has the
/// shard; only it writes that file, a few seconds apart while it works.
struct Attempt {
  int shard = 0;
  int number = 0;  ///< from 1
  AttemptState state = AttemptState::running;
  std::string host;
  ProcessIdentity process;
  std::string slurm_job;             ///< "12_3", empty outside Slurm
  int slurm_restart = 0;             ///< how often Slurm had started the job again
  std::int64_t started_unix_ms = 0;  ///< by its machine's clock, as the others
  std::int64_t beat_unix_ms = 0;
  std::string program;   ///< version
  std::string note;      ///< why it ended as it did
  bool refused = false;  ///< it failed before anything was measured, with a reason that its process would find again
  double age_s = 0;      ///< filled when read: since it was last written, by the clock that stamps the folder's files
};

/// After so long without a sign of life an attempt is lost, where nothing tells sooner.
inline constexpr double kLostAfterS = 60;

/// Another process has the shard.
class ShardTakenError : public Error {
 public:
  using Error::Error;
};

/// Attempts of all of a folder's shards, by shard and number; files that are none, or damaged, are passed over.
[[nodiscard]] std::vector<Attempt> read_attempts(const std::filesystem::path& folder);

/// The newest attempt at the shard.
[[nodiscard]] std::optional<Attempt> newest_attempt(const std::vector<Attempt>& attempts, int shard);

/// Whether a process that takes whatever shard is free is to try this one: not one that is done, that failed twice, as
/// that has a reason of its own, or that this process was refused before. What was only interrupted, is lost, crashed
/// or failed in the middle may pass.
[[nodiscard]] bool may_pass(const std::vector<Attempt>& attempts, int shard);

/// Whether a running attempt has no process any more: on this machine by its process; elsewhere once it has been silent
/// for `lost_after_s`.
[[nodiscard]] bool is_lost(const Attempt& attempt, double lost_after_s = kLostAfterS);

/// The folder's clock, in milliseconds since 1970: what a file written there now is stamped with. Throws Error if the
/// folder cannot be written.
[[nodiscard]] std::int64_t folder_clock_unix_ms(const std::filesystem::path& folder);

/// The right to a shard, as long as nobody takes it over. Move-only.
class ShardClaim {
 public:
  /// Claims the shard by making its next attempt's file, which at most one process can do. Throws ShardTakenError if
  /// another has it or was faster, Error if the folder cannot be written.
  ShardClaim(const std::filesystem::path& folder, int shard, double lost_after_s = kLostAfterS);

  /// A sign of life. False if another process took the shard over, as it took this one for dead: then nothing more may
  /// be written for it.
  [[nodiscard]] bool beat();
  /// What became of it; nothing is written if another process took it over. `refused`: see Attempt.
  void end(AttemptState state, const std::string& note, bool refused = false);
  [[nodiscard]] const Attempt& attempt() const noexcept { return attempt_; }

 private:
  [[nodiscard]] bool is_ours() const;
  void write() const;

  std::filesystem::path folder_;
  Attempt attempt_;
};

}  // namespace pascaline
