#include "cli/fleet/shard_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include "core/error.hpp"
#include "core/util/shown_text.hpp"

namespace pascaline::cli {

ShardProcess::ShardProcess(const std::vector<std::string>& command, const std::filesystem::path& output) {
  const int to = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  const int from = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (to < 0 || from < 0) {
    throw Error(fmt::format("cannot write {}: {}", output.string(), std::strerror(errno)), errno);
  }
  std::vector<char*> words;
  for (const std::string& word : command) {
    words.push_back(
        const_cast<char*>(word.c_str()));  // NOLINT(cppcoreguidelines-pro-type-const-cast): execv's signature
  }
  words.push_back(nullptr);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
      ::_exit(127);
    }
    ::dup2(from, STDIN_FILENO);
    ::dup2(to, STDOUT_FILENO);
    ::dup2(to, STDERR_FILENO);
    ::execv(words.front(), words.data());
    ::_exit(127);
  }
  const int fault = errno;
  ::close(to);
  ::close(from);
  if (process_ < 0) {
    throw Error(fmt::format("cannot start {}: {}", command.front(), std::strerror(fault)), fault);
  }
}

ShardProcess::~ShardProcess() { kill(); }

bool ShardProcess::has_ended() {
  int status = 0;
  if (!ended_ && ::waitpid(process_, &status, WNOHANG) == process_) {
    ended_ = true;
    exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return ended_;
}

void ShardProcess::ask_to_end() const noexcept {
  if (!ended_) {
    ::kill(process_, SIGTERM);
  }
}

void ShardProcess::kill() noexcept {
  if (ended_ || process_ < 0) {
    return;
  }
  ::kill(-process_, SIGKILL);
  ::kill(process_, SIGKILL);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  ended_ = true;
  exit_code_ = 128 + SIGKILL;
}

std::string last_line_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string last;
  for (std::string line; std::getline(stream, line);) {
    last = line.empty() ? last : line;
  }
  return clean_line(last.substr(0, 1000));
}

}  // namespace pascaline::cli
