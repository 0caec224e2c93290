#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "db/store.hpp"
#include "tuner/sweep/sweep_view.hpp"

namespace pascaline {

/// A sweep that runs now: one session, and so one device, a GPU.
struct Run {
  std::string uuid;
  std::int64_t process_id = 0;  ///< 0: not known
  std::int64_t started_unix_ms = 0;
  std::string command_line;
  std::vector<std::int64_t> sessions;
  SweepView view;
};

/// The sweeps among the sessions, given the newest first, whose processes are alive; the one begun first comes first.
[[nodiscard]] std::vector<Run> runs_of(const std::vector<SessionRow>& newest_first);

/// The newest unfinished session of the newest run that did not come to its end, that no living process works on and
/// whose plan is stored. Null if there is none.
[[nodiscard]] const SessionRow* session_to_resume(const std::vector<SessionRow>& newest_first);
/// The newest session of a run that came to its end and whose plan is stored, where no run is unfinished or under way.
[[nodiscard]] const SessionRow* session_to_continue(const std::vector<SessionRow>& newest_first);

/// "running since 2026-11-22 01:02 UTC, process 4321, session 3: pascaline sweep …"
[[nodiscard]] std::string heading(const Run& run);

/// That nothing is running, the last sessions, and how to go on; lines without the last one's end.
[[nodiscard]] std::string idle_text(const Store& store, const std::vector<SessionRow>& newest_first);

/// All of it: `database`, `running`, `last`, and in `resume` the command that resumes it, or null.
[[nodiscard]] nlohmann::json status_json(const Store& store, const std::vector<SessionRow>& newest_first);

}  // namespace pascaline
