#include "tuner/compile_pool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tuner/compile_protocol.hpp"

extern char** environ;

namespace pascaline {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(fmt::format("cannot make a pipe for a compile worker: {}", std::strerror(errno)), errno);
  }
  return {ends[0], ends[1]};
}

void close_end(int& descriptor) noexcept {
  if (descriptor >= 0) {
    ::close(descriptor);
    descriptor = -1;
  }
}

bool write_line(int descriptor, const std::string& line) {
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t count = ::write(descriptor, line.data() + done, line.size() - done);
    if (count < 0 && errno != EINTR) {
      return false;
    }
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  return true;
}

std::string ending_of(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  }
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace

CompilePool::CompilePool(CompilePoolOptions options) : options_(std::move(options)), cache_(options_.cache_folder) {
  if (options_.program.empty()) {
    options_.program = "/proc/self/exe";
  }
  std::signal(SIGPIPE, SIG_IGN);  // a worker that died shows as a failed write instead
  workers_.resize(std::max<std::size_t>(options_.workers, 1));
}

CompilePool::~CompilePool() {
  for (Worker& worker : workers_) {
    stop(worker);
  }
}

void CompilePool::start(Worker& worker) const {
  const Pipe requests = make_pipe();
  const Pipe replies = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, requests.read_end, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, replies.write_end, STDOUT_FILENO);
  // Own process group: the terminal's Ctrl-C is for the sweep, which ends its workers itself.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::string program = options_.program.string();
  std::vector<std::string> words{program,  "compile-worker",     "--cache", options_.cache_folder.string(),
                                 "--arch", options_.architecture};
  if (!options_.nvrtc.empty()) {
    words.insert(words.end(), {"--nvrtc", options_.nvrtc});
  }
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  pid_t child = -1;
  const int code = posix_spawn(&child, program.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(requests.read_end);
  ::close(replies.write_end);
  if (code != 0) {
    ::close(requests.write_end);
    ::close(replies.read_end);
    throw Error(fmt::format("cannot start a compile worker ({}): {}", program, std::strerror(code)), code);
  }
  worker = Worker{child, requests.write_end, replies.read_end, {}, {}, std::nullopt, {}};
}

void CompilePool::stop(Worker& worker) const noexcept {
  close_end(worker.to);
  close_end(worker.from);
  if (worker.process > 0) {
    ::kill(-worker.process, SIGKILL);
    int status = 0;
    while (::waitpid(worker.process, &status, 0) < 0 && errno == EINTR) {
    }
    worker.process = -1;
  }
}

void CompilePool::submit(std::uint64_t id, CompileRequest request) {
  queue_.push_back({id, std::move(request)});
  feed();
}

// Gives waiting jobs to idle workers, starting those that are not there.
void CompilePool::feed() {
  for (Worker& worker : workers_) {
    if (queue_.empty()) {
      return;
    }
    if (worker.job) {
      continue;
    }
    if (worker.process < 0) {
      start(worker);
    }
    worker.job = std::move(queue_.front());
    queue_.pop_front();
    worker.deadline = Clock::now() + options_.deadline;
    if (!send(worker)) {
      lose(worker, TrialStatus::crashed, "the compile worker died before it was asked");
    }
  }
}

bool CompilePool::send(Worker& worker) const {
  const CompileRequest& request = worker.job->request;
  const bool known =
      std::find(worker.sources.begin(), worker.sources.end(), request.source->hash) != worker.sources.end();
  if (!known) {
    if (!write_line(worker.to, source_message(*request.source))) {
      return false;
    }
    worker.sources.push_back(request.source->hash);
  }
  return write_line(worker.to, request_message(worker.job->id, request));
}

std::size_t CompilePool::pending() const noexcept {
  const auto busy =
      std::count_if(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.job.has_value(); });
  return queue_.size() + finished_.size() + static_cast<std::size_t>(busy);
}

std::vector<int> CompilePool::worker_processes() const {
  std::vector<int> processes;
  for (const Worker& worker : workers_) {
    if (worker.process > 0) {
      processes.push_back(worker.process);
    }
  }
  return processes;
}

void CompilePool::lose(Worker& worker, TrialStatus status, const std::string& reason) {
  Job job = std::move(*worker.job);
  stop(worker);
  worker = Worker{};
  Compiled lost;
  lost.id = job.id;
  lost.status = status;
  lost.result.reason = reason;
  finished_.push_back(std::move(lost));
}

void CompilePool::kill_overdue() {
  for (Worker& worker : workers_) {
    if (worker.job && Clock::now() >= worker.deadline) {
      lose(worker, TrialStatus::timed_out,
           fmt::format("the compiler did not finish within {} s",
                       std::chrono::duration_cast<std::chrono::seconds>(options_.deadline).count()));
    }
  }
}

Compiled CompilePool::finish(Job job, const std::string& line) {
  const auto reply = nlohmann::json::parse(line, nullptr, false);
  Compiled done;
  done.id = job.id;
  if (reply.is_discarded() || reply.value("id", std::uint64_t{0}) != job.id) {
    done.status = TrialStatus::crashed;
    done.result.reason = "the compile worker answered with something else than a reply";
    return done;
  }
  if (reply.contains("fault")) {
    throw Error(reply["fault"].get<std::string>());
  }
  if (auto stored = cache_.find(reply.value("key", std::string()))) {
    done.result = std::move(*stored);
    done.result.binary.compile_ms = reply.value("compile_ms", 0.0);
    done.result.binary.from_cache = reply.value("from_cache", false);
  } else {  // the disk refused to keep it: compile here, once more, rather than lose the variant
    done.result = Toolchain::find(options_.architecture, options_.nvrtc).compile(job.request);
  }
  done.status = done.result.ok ? TrialStatus::ok : TrialStatus::compile_failed;
  return done;
}

// Reads what a worker wrote; true if that ended its job.
bool CompilePool::read_reply(Worker& worker) {
  char block[4096];
  const ssize_t count = ::read(worker.from, block, sizeof block);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) {
    return false;
  }
  if (count <= 0) {
    int status = 0;
    while (::waitpid(worker.process, &status, 0) < 0 && errno == EINTR) {
    }
    worker.process = -1;
    lose(worker, TrialStatus::crashed, "the compiler crashed: " + ending_of(status));
    return true;
  }
  worker.input.append(block, static_cast<std::size_t>(count));
  const std::size_t end = worker.input.find('\n');
  if (end == std::string::npos) {
    return false;
  }
  const std::string line = worker.input.substr(0, end);
  worker.input.erase(0, end + 1);
  Job job = std::move(*worker.job);
  worker.job.reset();
  finished_.push_back(finish(std::move(job), line));
  return true;
}

std::optional<Compiled> CompilePool::wait(std::chrono::milliseconds timeout) {
  const auto until = Clock::now() + timeout;
  for (;;) {
    kill_overdue();
    feed();
    if (!finished_.empty()) {
      Compiled next = std::move(finished_.front());
      finished_.pop_front();
      return next;
    }
    std::vector<pollfd> waits;
    std::vector<Worker*> owners;
    auto wake = until;
    for (Worker& worker : workers_) {
      if (worker.job) {
        waits.push_back({worker.from, POLLIN, 0});
        owners.push_back(&worker);
        wake = std::min(wake, worker.deadline);
      }
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(wake - Clock::now()).count();
    if (waits.empty() || (left <= 0 && wake == until)) {
      return std::nullopt;
    }
    if (::poll(waits.data(), waits.size(), static_cast<int>(std::clamp<long long>(left, 1, 60'000))) < 0 &&
        errno == EINTR) {
      return std::nullopt;  // a signal: let the caller look at its flags
    }
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].revents != 0) {
        read_reply(*owners[i]);
      }
    }
  }
}

}  // namespace pascaline
