#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <tuple>

#include "cli/command.hpp"
#include "core/util/draft_folder.hpp"
#include "core/util/interruption.hpp"
#include "core/util/process.hpp"

namespace pascaline::cli {
namespace {

constexpr std::array kInterrupts{SIGINT, SIGTERM, SIGHUP};

std::atomic<bool> g_caught{false};

std::atomic<std::int64_t> g_interrupted_ms{0};

std::int64_t interrupt_clock_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// A signal handler cannot safely kill processes and remove folders while other threads run. So the process replaces
// itself by `pascaline end-interrupted`: its threads, open files and locks end, its children remain. `by_signal`: the
// signal that ends the process; 0: it exits with kInterrupted.
void end_at_once(int signal, int by_signal) {
  std::array<char, 4> number{};
  number[0] = static_cast<char>('0' + by_signal / 10);
  number[1] = static_cast<char>('0' + by_signal % 10);
  std::array<char*, kMaxDraftPlaces + 4> words{};
  std::array<char, 10> program{"pascaline"};
  std::array<char, 16> command{"end-interrupted"};
  words[0] = program.data();
  words[1] = command.data();
  words[2] = number.data();
  const auto places = draft_places();
  // execv does not write to its arguments.  NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
  std::transform(places.begin(), places.end(), &words[3], [](const char* place) { return const_cast<char*>(place); });
  ::execv("/proc/self/exe", words.data());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// A second signal within kApartMs counts as the same interrupt: a terminal and a parent may both signal the group.
void on_interrupt(int signal) {
  constexpr std::int64_t kApartMs = 200;
  const std::int64_t now = interrupt_clock_ms();
  std::int64_t first = 0;
  if (!g_caught) {
    end_at_once(signal, 0);
  } else if (g_interrupted_ms.compare_exchange_strong(first, now)) {
    interruption() = true;
  } else if (now - first >= kApartMs) {
    end_at_once(signal, signal);
  }
}

// Kills the children of the interrupted program, which had this process id, and removes its temporary folders. Then
// raises `signal`, or exits if it is 0. Further signals are ignored meanwhile, as they would end this short work too
// early.
int end_interrupted(int signal, const std::vector<std::string>& draft_folders) {
  for (const int interrupt : kInterrupts) {
    std::signal(interrupt, SIG_IGN);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  end_tree(::getpid());
  for (const std::string& folder : draft_folders) {
    remove_abandoned(folder);
  }
  remove_abandoned_again();
  if (signal != 0) {
    fmt::print(stderr, "pascaline: aborted\n");
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  return kInterrupted;
}

}  // namespace

const std::atomic<bool>& interrupted() { return interruption(); }

void end_at_interrupts() {
  std::ignore = draft_places();  // which makes the list, as no handler can
  for (const int signal : kInterrupts) {
    if (std::signal(signal, on_interrupt) == SIG_IGN) {
      std::signal(signal, SIG_IGN);  // started with nohup, or in the background by a script
    }
  }
}

void catch_interrupts() {
  g_caught = true;
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
}

namespace {

void add_end_interrupted_command(CLI::App& app, Action& action) {
  struct Options {
    int signal = SIGTERM;
    std::vector<std::string> folders;
  };
  CLI::App* command = app.add_subcommand("end-interrupted", "End at once, with all that was begun")->group("");
  const auto options = std::make_shared<Options>();
  command->add_option("signal", options->signal)->required();
  command->add_option("folders", options->folders);
  command->callback(
      [&action, options] { action = [options] { return end_interrupted(options->signal, options->folders); }; });
}

const Command kEndInterruptedCommand(Heading::hidden, 3, add_end_interrupted_command);

}  // namespace

}  // namespace pascaline::cli
