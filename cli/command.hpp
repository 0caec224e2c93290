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

// Each adds a subcommand that sets `action` when it is chosen.
void add_devices_command(CLI::App& app, Action& action);
void add_kernels_command(CLI::App& app, Action& action);
void add_compile_command(CLI::App& app, Action& action);
void add_bundle_command(CLI::App& app, Action& action);
void add_sweep_command(CLI::App& app, Action& action);
void add_fleet_command(CLI::App& app, Action& action);
void add_show_command(CLI::App& app, Action& action);
void add_status_command(CLI::App& app, Action& action);
void add_explain_command(CLI::App& app, Action& action);
void add_report_command(CLI::App& app, Action& action);
void add_serve_command(CLI::App& app, Action& action);
void add_export_command(CLI::App& app, Action& action);
void add_merge_command(CLI::App& app, Action& action);
void add_replay_command(CLI::App& app, Action& action);
void add_import_command(CLI::App& app, Action& action);
void add_check_command(CLI::App& app, Action& action);
void add_quantize_command(CLI::App& app, Action& action);
void add_convert_command(CLI::App& app, Action& action);
void add_tokenize_command(CLI::App& app, Action& action);
void add_generate_command(CLI::App& app, Action& action);
void add_chat_command(CLI::App& app, Action& action);
void add_bench_model_command(CLI::App& app, Action& action);
void add_validate_command(CLI::App& app, Action& action);
void add_profile_command(CLI::App& app, Action& action);
void add_probe_command(CLI::App& app, Action& action);
void add_portfolio_command(CLI::App& app, Action& action);
void add_rank_command(CLI::App& app, Action& action);
void add_workload_command(CLI::App& app, Action& action);
void add_completion_command(CLI::App& app, Action& action);
void add_reference_command(CLI::App& app, Action& action);
void add_worker_commands(CLI::App& app, Action& action);
void add_end_interrupted_command(CLI::App& app, Action& action);

}  // namespace pascaline::cli
