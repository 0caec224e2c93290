#pragma once

#include <atomic>
#include <functional>

#include <CLI/CLI.hpp>

#include "app/options.hpp"

namespace pascaline::cli {

/// Exit codes of the program (docs/guides/command_line.md).
inline constexpr int kSuccess = 0;
inline constexpr int kFault = 1;     ///< environment or input is wrong
inline constexpr int kUsage = 2;     ///< the command line is wrong
inline constexpr int kNegative = 3;  ///< it ran, and the answer is no
inline constexpr int kInterrupted = 130;

/// Set by the first Ctrl-C after `catch_interrupts`.
[[nodiscard]] const std::atomic<bool>& interrupted();
/// Makes Ctrl-C, SIGTERM and SIGHUP, unless they are ignored (nohup), end the process at once, with the processes that
/// it has started and all temporary folders.
void end_at_interrupts();
/// Makes the first Ctrl-C, SIGTERM or, unless it is ignored, SIGHUP set `interrupted`; the second ends the process.
void catch_interrupts();

/// A subcommand's work, run after the whole command line was read; returns the exit code.
using Action = std::function<int()>;

/// Headings of `pascaline --help` in its order; commands of the last one are not shown there.
enum class Heading { tune, models, data, shell, hidden };

/// A command of the program. Each is a constant of the file that has it, which no other file has to name.
class Command {
 public:
  /// `rank`: orders the commands of a heading. `add`: adds the subcommand, which sets `action` when it is chosen.
  Command(Heading heading, int rank, void (*add)(CLI::App& app, Action& action)) noexcept;

  /// Adds all of them.
  static void add_all(CLI::App& app, Action& action);

 private:
  Heading heading_;
  int rank_;
  void (*add_)(CLI::App& app, Action& action);
  const Command* next_;
};

}  // namespace pascaline::cli
