#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace pascaline {

/// How a child process ended, and what it wrote.
struct ProcessResult {
  int exit_code = 0;       ///< exit status, or 128 + signal
  int signal = 0;          ///< signal that ended it, 0 if it exited
  bool timed_out = false;  ///< it was killed at the deadline
  bool stopped = false;    ///< it was killed because the caller was told to stop
  /// Most memory that it, or a child it waited for, held at once; at least what this process held as it started it.
  std::uint64_t peak_resident_bytes = 0;
  std::string output;  ///< stdout and stderr together, at most 1 MiB of it
};

/// Runs a program (found on PATH) with arguments and waits for it. `environment` is added to this process's own.
/// Throws Error if it cannot be started. A child past `deadline` is killed with all that it has started; processes that
/// an ended child leaves behind are not waited for. It is also killed as soon as `stop`, asked many times a second,
/// says so.
[[nodiscard]] ProcessResult run_process(const std::vector<std::string>& command, std::chrono::milliseconds deadline,
                                        const std::vector<std::pair<std::string, std::string>>& environment = {},
                                        const std::function<bool()>& stop = {});

/// The same in a session of its own, which is killed with all that the child has started, in whatever process groups,
/// at the deadline or as soon as `stop` says so, and whose temporary folders are removed then. Standard input is a pipe
/// that ends with this process, so that the child can see that (end_session_with_parent).
[[nodiscard]] ProcessResult run_session(const std::vector<std::string>& command, std::chrono::milliseconds deadline,
                                        const std::vector<std::pair<std::string, std::string>>& environment,
                                        const std::function<bool()>& stop);

/// Kills every process of a session but the caller. Compilers run in process groups of their own, so that only the
/// session tells whose they are.
void kill_session(pid_t session) noexcept;

/// Kills a process with all that it has started, in whatever groups and sessions, and waits for a moment until none of
/// them runs. The calling process itself stays.
void end_tree(pid_t root) noexcept;

/// To be called first thing in a worker: has the system kill it when the process that started it ends, however that
/// comes about, so that nothing is left on a device; SIGTERM, SIGINT and SIGHUP, which a whole job may be sent, are the
/// parent's to act on.
void end_with_parent() noexcept;

/// The same for a worker that starts processes of its own: they end, too. For a worker that leads its session and whose
/// standard input is a pipe from its parent.
void end_session_with_parent();

}  // namespace pascaline
