#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/emulator/emulated_device.hpp"

namespace pascaline {

/// What AddressSanitizer found.
struct SanitizerReport {
  std::string kind;  ///< "use-after-poison" (beyond a device buffer), "global-buffer-overflow" (static shared array), …
  std::string access;    ///< "WRITE of size 4"
  std::string location;  ///< "matmul.cu:57", of the innermost frame outside the shim; empty if unknown
  std::string function;  ///< of that frame
};

/// Outcome of a program that ran with AddressSanitizer in it.
struct SanitizedRun {
  int exit_code = 0;  ///< kSanitizerExitCode if there is a report
  bool timed_out = false;
  bool stopped = false;  ///< the caller was told to stop
  std::optional<SanitizerReport> report;
  std::string output;
};

inline constexpr int kSanitizerExitCode = 86;

/// Runs `command` (as a rule this very program, with arguments that make it run a kernel compiled with
/// `address_sanitizer` by `compiler`) with AddressSanitizer's runtime preloaded. Throws EmulatorError if the
/// compiler has no such runtime, Error if the command cannot be started. Once `stop` says so, the program is killed
/// with all that it started, as at the deadline.
[[nodiscard]] SanitizedRun run_sanitized(const HostCompiler& compiler, const std::vector<std::string>& command,
                                         std::chrono::milliseconds deadline = std::chrono::minutes(10),
                                         const std::function<bool()>& stop = {});

/// Reads the first report in a program's output.
[[nodiscard]] std::optional<SanitizerReport> parse_sanitizer_report(std::string_view output);

}  // namespace pascaline
