#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "db/sweep_plan.hpp"
#include "tuner/fleet/shard.hpp"

namespace pascaline {

/// A run to resume, as its database has it. The values of its plan are checked as a command line's are; its
/// problems are not yet, nor are the names of its paths, which are only to be shown.
struct StoredRun {
  std::string uuid;
  std::vector<std::int64_t> sessions;  ///< the first first
  std::int64_t started_unix_ms = 0;
  SweepPlan plan;
  std::optional<ShardIdentity> shard{};  ///< what it is part of
  std::string part{};                    ///< "shard 2/4 of fleet …" of what is no run yet; empty: it is one
};

/// The newest run of the database that did not finish and that no living process works on, or, with `finished_too`, if
/// all did, the newest; throws Error if there is none, or what to do if it has no plan.
[[nodiscard]] StoredRun run_to_resume(const std::filesystem::path& database, bool finished_too);

/// Throws Error: "cannot resume session 3: ", or "cannot run shard 2/4 of …: ", and why.
[[noreturn]] void refuse_run(const StoredRun& run, const std::string& why);

}  // namespace pascaline
