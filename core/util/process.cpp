#include "core/util/process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/util/draft_folder.hpp"

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

struct Pipe {
  int read_end = -1;
  int write_end = -1;

  explicit Pipe(const std::string& program) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw Error(fmt::format("cannot make a pipe for {}: {}", program, std::strerror(errno)), errno);
    }
    read_end = ends[0];
    write_end = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_end(read_end);
    close_end(write_end);
  }
  static void close_end(int& descriptor) noexcept {
    if (descriptor >= 0) {
      ::close(std::exchange(descriptor, -1));
    }
  }
};

/// What a child leads, and what is killed with it.
enum class Leads : std::uint8_t { group, session };

pid_t spawn(std::vector<std::string> command, std::vector<std::string> environment, int input, int output,
            Leads leads) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (input >= 0) {
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, leads == Leads::session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP);
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

// Reads until the child has ended, `stop` says so or the deadline has come; false unless the child has ended. The
// stream's end tells neither: a child may close its output and go on, and a process it left behind may hold the output
// open.
bool drain(int descriptor, pid_t child, Clock::time_point deadline, const std::function<bool()>& stop,
           ProcessResult& result) {
  std::string& output = result.output;
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
    result.stopped = stop && stop();
    result.timed_out = !result.stopped && left.count() <= 0;
    if (result.stopped || result.timed_out) {
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

ProcessResult run(const std::vector<std::string>& command, std::chrono::milliseconds deadline,
                  const std::vector<std::pair<std::string, std::string>>& environment, Leads leads,
                  const std::function<bool()>& stop) {
  if (command.empty()) {
    throw Error("cannot start a program without a name");
  }
  Pipe output(command.front());
  std::optional<Pipe> input;
  if (leads == Leads::session) {
    input.emplace(command.front());
  }
  const pid_t child =
      spawn(command, merged_environment(environment), input ? input->read_end : -1, output.write_end, leads);
  Pipe::close_end(output.write_end);
  ProcessResult result;
  const bool ended = drain(output.read_end, child, Clock::now() + deadline, stop, result);
  if (!ended) {
    if (leads == Leads::session) {
      kill_session(child);
    }
    ::kill(-child, SIGSTOP);  // so that it starts nothing meanwhile
    end_tree(child);
    ::kill(-child, SIGKILL);
  }
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
  if (!ended && leads == Leads::session) {
    remove_abandoned_again();
  }
  return result;
}

/// A living process, as its `stat` tells.
struct LivingProcess {
  pid_t id = -1;
  pid_t parent = -1;
  pid_t session = -1;
};

// The second field, in parentheses, may hold anything; the third tells zombies. Without an id if it is none.
LivingProcess living_process(const char* number) noexcept {
  std::array<char, 64> path{};
  std::array<char, 512> text{};
  std::snprintf(path.data(), path.size(), "/proc/%s/stat", number);
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return {};
  }
  const ssize_t count = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  const char* const field = count > 0 ? std::strrchr(text.data(), ')') : nullptr;
  if (field == nullptr || std::strlen(field) < 4 || field[2] == 'Z' || field[2] == 'X') {
    return {};
  }
  char* rest = nullptr;
  LivingProcess found;
  found.parent = static_cast<pid_t>(std::strtol(field + 3, &rest, 10));
  std::strtol(rest, &rest, 10);  // its group
  found.session = static_cast<pid_t>(std::strtol(rest, &rest, 10));
  found.id = static_cast<pid_t>(std::strtol(number, nullptr, 10));
  return found;
}

// All but this one.
template <typename Visit>
void for_each_process(const Visit& visit) noexcept {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    const auto number = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    const LivingProcess process = number > 0 && number != ::getpid() ? living_process(entry->d_name) : LivingProcess();
    if (process.id > 0) {
      visit(process);
    }
  }
}

// A batch system that preempts a job, and who shuts a machine down, sends these to every process. When a worker is to
// end is its parent's to say: it finishes the trial in flight, which would else count as one that crashed its worker.
void leave_signals_to_parent() noexcept {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    std::signal(signal, SIG_IGN);
  }
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& command, std::chrono::milliseconds deadline,
                          const std::vector<std::pair<std::string, std::string>>& environment,
                          const std::function<bool()>& stop) {
  return run(command, deadline, environment, Leads::group, stop);
}

ProcessResult run_session(const std::vector<std::string>& command, std::chrono::milliseconds deadline,
                          const std::vector<std::pair<std::string, std::string>>& environment,
                          const std::function<bool()>& stop) {
  return run(command, deadline, environment, Leads::session, stop);
}

// Again until none is left, as a compiler may just have started its next stage.
void kill_session(pid_t session) noexcept {
  constexpr int kMaxPasses = 100;
  bool found = true;
  for (int pass = 0; found && pass < kMaxPasses; ++pass) {
    found = false;
    for_each_process([&](const LivingProcess& process) {
      if (process.session == session) {
        ::kill(process.id, SIGKILL);
        found = true;
      }
    });
  }
}

// Who belongs to the tree is found before anybody in it is killed: whose parent is gone belongs to no one. A session
// that was begun in the tree is of nobody else.
void end_tree(pid_t root) noexcept {
  constexpr std::chrono::milliseconds kPatience{2000};
  const auto end = Clock::now() + kPatience;
  const pid_t own_session = ::getsid(0);
  std::set<pid_t> tree{root};
  std::set<pid_t> sessions;
  std::vector<pid_t> living{root};
  while (!living.empty() && Clock::now() < end) {
    for (std::size_t before = 0; before != tree.size();) {  // until a pass finds no further ones
      before = tree.size();
      living.clear();
      for_each_process([&](const LivingProcess& process) {
        if (tree.contains(process.id) || tree.contains(process.parent) || sessions.contains(process.session)) {
          living.push_back(process.id);
          tree.insert(process.id);
          if (process.session != own_session) {
            sessions.insert(process.session);
          }
        }
      });
    }
    for (const pid_t process : living) {
      ::kill(process, SIGKILL);
    }
    if (!living.empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
}

void end_with_parent() noexcept {
  leave_signals_to_parent();
  const pid_t parent = ::getppid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {  // it ended just before
    ::_exit(1);
  }
}

// The signal of a parent's death reaches this process alone, and killing it first would leave its compilers to run on:
// so a thread waits for the other end of standard input to be closed, which is the parent's.
void end_session_with_parent() {
  leave_signals_to_parent();
  if (::getsid(0) != ::getpid()) {
    end_with_parent();
    return;
  }
  std::thread([] {
    pollfd entry{STDIN_FILENO, 0, 0};
    while (::poll(&entry, 1, -1) < 0 && errno == EINTR) {
    }
    kill_session(::getpid());
    ::kill(::getpid(), SIGKILL);
  }).detach();
}

}  // namespace pascaline
