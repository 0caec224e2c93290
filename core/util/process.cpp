#include "core/util/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "core/error.hpp"

namespace pascaline {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMaxOutput = 1 << 20;

std::vector<std::string> merged_environment(const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : added) {
      replaced = replaced || (text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=');
    }
    if (!replaced) {
      merged.emplace_back(text);
    }
  }
  for (const auto& [name, value] : added) {
    merged.push_back(name + "=" + value);
  }
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    out.push_back(text.data());
  }
  out.push_back(nullptr);
  return out;
}

pid_t spawn(std::vector<std::string> command, std::vector<std::string> environment, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t child = -1;
  auto arguments = pointers(command);
  auto variables = pointers(environment);
  const int code = posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) {
    throw Error(fmt::format("cannot start {}: {}", command.front(), std::strerror(code)), code);
  }
  return child;
}

// Whether the child has ended; leaves it to be reaped, so that its number is not given to another process.
bool has_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == child;
}

// Reads what is there within `wait`; false at the end of the stream.
bool read_some(int descriptor, std::chrono::milliseconds wait, std::string& output) {
  char block[1 << 14];
  pollfd poll_entry{descriptor, POLLIN, 0};
  const int ready = ::poll(&poll_entry, 1, static_cast<int>(wait.count()));
  if (ready <= 0) {
    return ready == 0 || errno == EINTR;
  }
  const ssize_t count = ::read(descriptor, block, sizeof block);
  if (count < 0) {
    return errno == EINTR || errno == EAGAIN;
  }
  const std::size_t room = kMaxOutput - output.size();
  output.append(block, std::min(static_cast<std::size_t>(count), room));
  return count > 0;
}

// Reads until the child has ended or the deadline has come; false at the deadline. The stream's end tells neither:
// a child may close its output and go on, and a process it left behind may hold the output open.
bool drain(int descriptor, pid_t child, Clock::time_point deadline, std::string& output) {
  constexpr std::chrono::milliseconds kLook{20};  // how often the child is looked at while it is silent
  std::chrono::milliseconds pause{1};             // the same once it has closed its output: most end right then
  bool open = true;
  for (;;) {
    if (has_ended(child)) {
      for (std::size_t before = output.size() + 1; open && before != output.size();) {
        before = output.size();
        open = read_some(descriptor, std::chrono::milliseconds(0), output);
      }
      return true;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      return false;
    }
    if (open) {
      open = read_some(descriptor, std::min(left, kLook), output);
    } else {
      std::this_thread::sleep_for(std::min(left, pause));
      pause = std::min(2 * pause, kLook);
    }
  }
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& command, std::chrono::milliseconds deadline,
                          const std::vector<std::pair<std::string, std::string>>& environment) {
  if (command.empty()) {
    throw Error("cannot start a program without a name");
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(fmt::format("cannot make a pipe for {}: {}", command.front(), std::strerror(errno)), errno);
  }
  pid_t child = -1;
  try {
    child = spawn(command, merged_environment(environment), ends[1]);
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
  ProcessResult result;
  result.timed_out = !drain(ends[0], child, Clock::now() + deadline, result.output);
  if (result.timed_out) {
    ::kill(-child, SIGKILL);
    ::kill(child, SIGKILL);  // it may have left its group
  }
  ::close(ends[0]);
  int status = 0;
  rusage usage{};
  while (::wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  result.peak_resident_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) << 10U;
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
    result.exit_code = 128 + result.signal;
  } else {
    result.exit_code = WEXITSTATUS(status);
  }
  return result;
}

}  // namespace pascaline
