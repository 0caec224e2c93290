#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "cli/command.hpp"

namespace pascaline::cli {
namespace {

std::atomic<bool> g_interrupted{false};

std::atomic<std::int64_t> g_interrupted_ms{0};

std::int64_t interrupt_clock_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// A second one that follows at once is the same: a terminal and a parent may both send it to a group of processes.
void on_interrupt(int signal) {
  constexpr std::int64_t kApartMs = 200;
  const std::int64_t now = interrupt_clock_ms();
  std::int64_t first = 0;
  if (g_interrupted_ms.compare_exchange_strong(first, now)) {
    g_interrupted = true;
  } else if (now - first >= kApartMs) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
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
