#include "tuner/ipc/worker_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/util/draft_folder.hpp"
#include "core/util/process.hpp"
#include "tuner/ipc/frames.hpp"

namespace pascaline {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(fmt::format("cannot make a pipe for a worker process: {}", std::strerror(errno)), errno);
  }
  return {ends[0], ends[1]};
}

void close_end(int& descriptor) noexcept {
  if (descriptor >= 0) {
    ::close(descriptor);
    descriptor = -1;
  }
}

pid_t spawn(std::vector<std::string> command, int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& word : command) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  pid_t child = -1;
  const int code = posix_spawn(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) {
    throw Error(fmt::format("cannot start a worker process ({}): {}", command.front(), std::strerror(code)), code);
  }
  return child;
}

}  // namespace

WorkerProcess::WorkerProcess(std::vector<std::string> command) {
  Pipe requests = make_pipe();
  Pipe replies;
  try {
    replies = make_pipe();
    process_ = spawn(std::move(command), requests.read_end, replies.write_end);
  } catch (...) {
    for (int* end : {&requests.read_end, &requests.write_end, &replies.read_end, &replies.write_end}) {
      close_end(*end);
    }
    throw;
  }
  close_end(requests.read_end);
  close_end(replies.write_end);
  to_ = requests.write_end;
  from_ = replies.read_end;
}

bool WorkerProcess::write_some(std::string& text) const noexcept {
  const int flags = ::fcntl(to_, F_GETFL);
  ::fcntl(to_, F_SETFL, flags | O_NONBLOCK);
  bool reads = true;
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(to_, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) {
      reads = errno == EAGAIN;
      break;
    }
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  text.erase(0, done);
  ::fcntl(to_, F_SETFL, flags);
  return reads;
}

bool WorkerProcess::read(std::string& text) const {
  std::array<char, 1 << 16> block{};
  const ssize_t count = ::read(from_, block.data(), block.size());
  if (count < 0) {
    return errno == EINTR || errno == EAGAIN;
  }
  text.append(block.data(), static_cast<std::size_t>(count));
  return count > 0;
}

// The process is reaped last: until then its number, which is that of its session, cannot be given to another.
int WorkerProcess::end() noexcept {
  close_end(to_);
  close_end(from_);
  int status = 0;
  if (process_ > 0) {
    kill_session(process_);
    ::kill(process_, SIGKILL);
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    remove_abandoned_again();
  }
  return status;
}

void WorkerProcess::swap(WorkerProcess& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(to_, other.to_);
  std::swap(from_, other.from_);
}

// Taking a GPU's context or a compiler down would race with the parent's signal and with the threads that their
// libraries keep, for what the process gives back in any case.
void end_at_once() noexcept {
  std::fflush(stdout);
  ::_exit(0);
}

MessageWriter::MessageWriter() : descriptor_(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)) {
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

MessageWriter::~MessageWriter() { ::close(descriptor_); }

void MessageWriter::send(const nlohmann::json& message) {
  const std::string bytes = frame_of(message);
  const std::scoped_lock lock(mutex_);
  if (!write_all(descriptor_, bytes)) {
    ::_exit(1);
  }
}

bool parent_is_gone() noexcept {
  pollfd entry{STDIN_FILENO, 0, 0};
  return ::poll(&entry, 1, 0) > 0;
}

bool may_start_later(const Error& error) noexcept {
  return error.code() == EAGAIN || error.code() == ENOMEM || error.code() == EMFILE || error.code() == ENFILE;
}

std::string ending_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return fmt::format("signal {} ({})", WTERMSIG(wait_status), ::strsignal(WTERMSIG(wait_status)));
  }
  return fmt::format("exit code {}", WEXITSTATUS(wait_status));
}

}  // namespace pascaline
