#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"
#include "cli/command_words.hpp"
#include "cli/help_layout.hpp"
#include "cli/output_folder.hpp"
#include "core/error.hpp"
#include "core/util/draft_folder.hpp"
#include "core/util/shown_text.hpp"
#include "core/util/stop_check.hpp"
#include "core/version.hpp"

namespace pascaline::cli {
namespace {

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

// Commands of a heading in `pascaline --help`.
void add_group(CLI::App& app, Action& action, const char* heading,
               std::initializer_list<void (*)(CLI::App&, Action&)> commands) {
  const std::string none = app.get_group();  // what a command has that was not put into a group
  for (const auto& add_command : commands) {
    add_command(app, action);
  }
  for (CLI::App* command : app.get_subcommands([&](const CLI::App* added) { return added->get_group() == none; })) {
    command->group(heading);
  }
}

void add_commands(CLI::App& app, Action& action) {
  add_group(app, action, "Tune",
            {add_devices_command, add_probe_command, add_kernels_command, add_sweep_command, add_status_command,
             add_fleet_command, add_explain_command, add_check_command, add_compile_command, add_rank_command,
             add_portfolio_command, add_replay_command});
  add_group(app, action, "Models",
            {add_generate_command, add_chat_command, add_bench_model_command, add_profile_command, add_workload_command,
             add_validate_command, add_quantize_command, add_convert_command, add_tokenize_command});
  add_group(app, action, "Data",
            {add_show_command, add_report_command, add_serve_command, add_bundle_command, add_merge_command,
             add_export_command, add_import_command});
  add_group(app, action, "Shell", {add_completion_command});
  add_worker_commands(app, action);
  add_reference_command(app, action);
  add_end_interrupted_command(app, action);
  arrange_help(app);
}

// Prints the line with where to read on, and returns the exit code.
int usage_fault(const CLI::App& app, const std::vector<std::string>& words, const std::string& line) {
  const CLI::App* const command = command_of(app, words);
  fault(fmt::format("{}; see pascaline{}{} --help", line, command != nullptr ? " " : "",
                    command != nullptr ? full_name(*command) : ""));
  return kUsage;
}

int run(int argc, char** argv) {
  CLI::App app{"Pascaline tunes CUDA kernels for NVIDIA Pascal GPUs (and any other), and keeps what it measured.",
               "pascaline"};
  app.set_version_flag("--version", std::string("pascaline ") + kVersion);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done; 1 something is wrong with the input or the machine; 2 wrong command line;\n"
      "3 it ran and the answer is negative; 130 interrupted. `pascaline COMMAND --help` has examples.");
  Action action;
  add_commands(app, action);
  const std::vector<std::string> words(argv, argv + argc);
  if (const std::string wrong = fault_of_words(app, words); !wrong.empty()) {
    return usage_fault(app, words, wrong);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // help or version was asked for
      return app.exit(error);
    }
    return usage_fault(app, words, error.what());
  }
  remove_abandoned(temporary_files());  // by processes that were killed
  try {
    return action();
  } catch (const StoppedError& error) {
    std::fflush(stdout);
    fault(error.what());
    return kInterrupted;
  } catch (const UsageError& error) {
    std::fflush(stdout);
    return usage_fault(app, words, error.what());
  }
}

}  // namespace

}  // namespace pascaline::cli

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a fault to be told, as a full disk is
  pascaline::cli::end_at_interrupts();
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
  } catch (const std::filesystem::filesystem_error& error) {
    std::fflush(stdout);
    return pascaline::cli::fault(pascaline::cli::plain_text(error));
  } catch (const std::exception& error) {
    std::fflush(stdout);
    return pascaline::cli::fault(error.what());
  }
}
