#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string_view>

#include "cli/command.hpp"
#include "cli/command_words.hpp"
#include "core/error.hpp"
#include "core/util/shown_text.hpp"
#include "core/version.hpp"

namespace pascaline::cli {
namespace {

std::atomic<bool> g_interrupted{false};

void on_interrupt(int signal) {
  if (g_interrupted.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

// Errors are one line, so that a script can show or log them as they are.
int fault(std::string_view line) {
  std::fprintf(stderr, "pascaline: %s\n", clean_line(line).c_str());
  return kFault;
}

// Which process it was is worth knowing where several share standard error.
int output_fault(int argc, char** argv, int error) {
  return fault(fmt::format("cannot write to standard output ({}process {}): {}",
                           argc > 1 ? fmt::format("pascaline {}, ", argv[1]) : "", ::getpid(),
                           error != 0 ? std::strerror(error) : "an earlier write failed"));
}

// But for what takes a device's memory, which is a list.
int memory_fault(const OutOfMemoryError& error) {
  std::fprintf(stderr, "pascaline: %s\n", clean_lines(error.what()).c_str());
  return kFault;
}

// The first word if it is neither an option nor a subcommand: the parser would only say that one is missing.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  const auto commands = app.get_subcommands([&](const CLI::App* command) { return command->check_name(word); });
  return word.empty() || word.front() == '-' || !commands.empty() ? "" : word;
}

int run(int argc, char** argv) {
  CLI::App app{"Pascaline tunes CUDA kernels for NVIDIA Pascal GPUs (and any other), and keeps what it measured.",
               "pascaline"};
  app.set_version_flag("--version", std::string("pascaline ") + kVersion);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  app.footer(
      "Exit codes: 0 done; 1 something is wrong with input or machine; 2 wrong command line;\n"
      "3 it ran, and the answer is no; 130 interrupted. `pascaline COMMAND --help` has examples.");
  Action action;
  add_devices_command(app, action);
  add_compile_command(app, action);
  add_sweep_command(app, action);
  add_bundle_command(app, action);
  add_show_command(app, action);
  add_status_command(app, action);
  add_explain_command(app, action);
  add_report_command(app, action);
  add_serve_command(app, action);
  add_export_command(app, action);
  add_merge_command(app, action);
  add_replay_command(app, action);
  add_import_command(app, action);
  add_check_command(app, action);
  add_tokenize_command(app, action);
  add_generate_command(app, action);
  add_chat_command(app, action);
  add_bench_model_command(app, action);
  add_validate_command(app, action);
  add_profile_command(app, action);
  add_rank_command(app, action);
  add_workload_command(app, action);
  add_completion_command(app, action);
  add_worker_commands(app, action);
  if (const std::string wrong = fault_of_words(app, {argv, argv + argc}); !wrong.empty()) {
    fault(wrong + "; see pascaline --help");
    return kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // help or version was asked for
      return app.exit(error);
    }
    const std::string unknown = unknown_command(app, argc, argv);
    fault((unknown.empty() ? error.what() : "there is no command '" + unknown + "'") + "; see pascaline --help");
    return kUsage;
  }
  return action();
}

}  // namespace

const std::atomic<bool>& interrupted() { return g_interrupted; }

void catch_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  if (std::signal(SIGHUP, on_interrupt) == SIG_IGN) {
    std::signal(SIGHUP, SIG_IGN);  // started with nohup
  }
}

}  // namespace pascaline::cli

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a fault to be told, as a full disk is
  try {
    const int code = pascaline::cli::run(argc, argv);
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return pascaline::cli::output_fault(argc, argv, errno);
    }
    return code;
  } catch (const pascaline::OutOfMemoryError& error) {
    std::fflush(stdout);
    return pascaline::cli::memory_fault(error);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    return pascaline::cli::fault(error.what());
  }
}
