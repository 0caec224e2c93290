#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pascaline {

/// How a child process ended, and what it wrote.
struct ProcessResult {
  int exit_code = 0;       ///< exit status, or 128 + signal
  int signal = 0;          ///< signal that ended it, 0 if it exited
  bool timed_out = false;  ///< it was killed at the deadline
  /// Most memory that it, or a child it waited for, held at once; at least what this process held as it started it.
  std::uint64_t peak_resident_bytes = 0;
  std::string output;  ///< stdout and stderr together, at most 1 MiB of it
};

/// Runs a program (found on PATH) with arguments and waits for it. `environment` is added to this process's own.
/// Throws Error if it cannot be started. A child past `deadline` is killed with its process group; processes that
/// an ended child leaves behind are not waited for.
[[nodiscard]] ProcessResult run_process(const std::vector<std::string>& command, std::chrono::milliseconds deadline,
                                        const std::vector<std::pair<std::string, std::string>>& environment = {});

}  // namespace pascaline
