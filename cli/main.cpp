#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
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
  Command::add_all(app, action);
  arrange_help(app);
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
