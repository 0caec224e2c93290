#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pascaline {

/// How a child process ended, and what it wrote.
struct ProcessResult {
  int exit_code = 0;                      ///< exit status, or 128 + signal
  int signal = 0;                         ///< signal that ended it, 0 if it exited
  bool timed_out = false;                 ///< it was killed at the deadline
  std::uint64_t peak_resident_bytes = 0;  ///< most memory that it, or one of the children it waited for, held
  std::string output;                     ///< stdout and stderr together, at most 1 MiB of it
};

/// Runs a program (found on PATH) with arguments and waits for it. `environment` is added to this process's own.
/// Throws Error if it cannot be started. A child past `deadline` is killed with its process group; processes that
/// an ended child leaves behind are not waited for.
[[nodiscard]] ProcessResult run_process(const std::vector<std::string>& command, std::chrono::milliseconds deadline,
                                        const std::vector<std::pair<std::string, std::string>>& environment = {});

}  // namespace pascaline
