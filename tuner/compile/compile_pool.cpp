#include "tuner/compile/compile_pool.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "core/error.hpp"
#include "tuner/compile/compile_messages.hpp"

namespace pascaline {
namespace {

/// A fault that the worker reports; other exceptions mean that its answer is unreadable.
struct CompilerFault : Error {
  using Error::Error;
};

}  // namespace

CompilePool::CompilePool(CompilePoolOptions options) : options_(std::move(options)), cache_(options_.cache_folder) {
  if (options_.program.empty()) {
    options_.program = "/proc/self/exe";
  }
  std::signal(SIGPIPE, SIG_IGN);  // a worker that died shows as a failed write instead
  workers_.resize(std::max<std::size_t>(options_.workers, 1));
}

void CompilePool::start(Worker& worker) const {
  std::vector<std::string> command{options_.program.string(),      "compile-worker", "--cache",
                                   options_.cache_folder.string(), "--arch",         options_.architecture};
  if (!options_.nvrtc.empty()) {
    command.insert(command.end(), {"--nvrtc", options_.nvrtc});
  }
  if (options_.memory_bytes > 0) {
    command.insert(command.end(), {"--memory", std::to_string(options_.memory_bytes)});
  }
  worker.process = WorkerProcess(std::move(command));
  worker.reader = FrameReader();
  worker.output.clear();
  worker.sources.clear();
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
    if (!worker.process && !try_start(worker)) {
      return;
    }
    worker.job = std::move(queue_.front());
    queue_.pop_front();
    worker.deadline = Clock::now() + options_.deadline;
    if (!send(worker)) {  // it died while it was idle, which is not this variant's fault
      start(worker);
      if (!send(worker)) {
        lose(worker, TrialStatus::crashed, "the compile worker died before it got a request");
      }
    }
  }
}

// Of processes or descriptors there may be enough again soon; throws Error if there are none for long.
bool CompilePool::try_start(Worker& worker) {
  if (Clock::now() < start_at_) {
    return false;
  }
  try {
    start(worker);
    failed_starts_ = 0;
    return true;
  } catch (const Error& error) {
    if (!may_start_later(error) || ++failed_starts_ > kMaxFailedStarts) {
      throw;
    }
    start_at_ = Clock::now() + std::chrono::seconds(1);
    return false;
  }
}

// As much as its pipe has room for; `read_replies` sends the rest. False if it does not read any more.
bool CompilePool::send(Worker& worker) const {
  const CompileRequest& request = worker.job->request;
  const bool known =
      std::find(worker.sources.begin(), worker.sources.end(), request.source->hash) != worker.sources.end();
  if (!known) {
    worker.output += frame_of(source_message(*request.source));
    worker.sources.push_back(request.source->hash);
  }
  worker.output += frame_of(request_message(worker.job->id, request));
  return worker.process.write_some(worker.output);
}

std::size_t CompilePool::busy() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.job.has_value(); }));
}

std::size_t CompilePool::pending() const noexcept { return queue_.size() + finished_.size() + busy(); }

std::vector<pollfd> CompilePool::wakeups() const {
  std::vector<pollfd> out;
  for (const Worker& worker : workers_) {
    if (worker.job) {
      out.push_back({worker.process.output(), POLLIN, 0});
    }
  }
  return out;
}

std::vector<int> CompilePool::worker_processes() const {
  std::vector<int> processes;
  for (const Worker& worker : workers_) {
    if (worker.process) {
      processes.push_back(worker.process.process());
    }
  }
  return processes;
}

void CompilePool::lose(Worker& worker, TrialStatus status, std::string reason) {
  Compiled lost;
  lost.id = worker.job->id;
  lost.status = status;
  lost.result.reason = std::move(reason);
  worker = Worker{};
  finished_.push_back(std::move(lost));
}

// With the cap on its memory, which is the likeliest reason.
std::string CompilePool::crash_reason(const std::string& ending) const {
  return "the compiler crashed: " + ending +
         (options_.memory_bytes > 0 ? fmt::format(" (it may use {} MiB of memory)", options_.memory_bytes >> 20U) : "");
}

void CompilePool::kill_overdue() {
  for (Worker& worker : workers_) {
    if (worker.job && Clock::now() >= worker.deadline) {
      lose(worker, TrialStatus::timed_out,
           fmt::format("the compiler did not finish within {} s",
                       std::chrono::duration<double>(options_.deadline).count()));
    }
  }
}

// Takes a worker's answer, which ends its job.
void CompilePool::take_reply(Worker& worker, const nlohmann::json& reply) {
  if (reply.at("id").get<std::uint64_t>() != worker.job->id) {
    throw Error("a compilation that was not requested");
  }
  const auto what = reply.at("is").get<std::string>();
  if (what == "fault") {
    worker.job.reset();
    throw CompilerFault(reply.at("reason").get<std::string>());
  }
  if (what == "crashed") {
    lose(worker, TrialStatus::crashed, crash_reason(reply.at("reason").get<std::string>()));
    return;
  }
  Compiled done;
  done.id = worker.job->id;
  if (auto stored = cache_.find(reply.at("keys").get<std::vector<std::string>>())) {
    done.result = std::move(*stored);
    reply.at("compile_ms").get_to(done.result.binary.compile_ms);
    reply.at("from_cache").get_to(done.result.binary.from_cache);
  } else if (reply.contains("result")) {  // the disk refused to keep it
    reply.at("result").get_to(done.result);
  } else if (!worker.job->again) {  // the cache was cleared just now, which is not this variant's fault
    worker.job->again = true;
    queue_.push_front(std::move(*worker.job));
    worker.job.reset();
    return;
  } else {
    done.result.crashed = true;
    done.result.reason = "the cache lost what the compiler had just stored in it";
  }
  done.status = done.result.crashed ? TrialStatus::crashed
                : done.result.ok    ? TrialStatus::ok
                                    : TrialStatus::compile_failed;
  worker.job.reset();
  finished_.push_back(std::move(done));
}

// Reads what a worker wrote.
void CompilePool::read_reply(Worker& worker) {
  std::string bytes;
  if (!worker.process.read(bytes)) {
    lose(worker, TrialStatus::crashed, crash_reason(ending_of(worker.process.end())));
    return;
  }
  worker.reader.append(bytes);
  try {
    if (const auto reply = worker.reader.next()) {
      take_reply(worker, *reply);
    }
  } catch (const CompilerFault&) {
    throw;
  } catch (const std::exception& error) {
    lose(worker, TrialStatus::crashed, fmt::format("the compile worker sent an unreadable message ({})", error.what()));
  }
}

// Sends what waits to be sent and reads replies that are there within `timeout`; false if none came.
bool CompilePool::read_replies(std::chrono::milliseconds timeout) {
  std::vector<pollfd> waits;
  std::vector<Worker*> owners;
  for (Worker& worker : workers_) {
    if (worker.job) {
      waits.push_back({worker.process.output(), POLLIN, 0});
      owners.push_back(&worker);
    }
  }
  const std::size_t readers = waits.size();
  for (Worker& worker : workers_) {
    if (worker.job && !worker.output.empty()) {
      waits.push_back({worker.process.input(), POLLOUT, 0});
      owners.push_back(&worker);
    }
  }
  if (waits.empty() || ::poll(waits.data(), waits.size(), static_cast<int>(timeout.count())) <= 0) {
    return false;
  }
  // First what is to be sent: reading may find that a worker is lost.
  for (std::size_t i = waits.size(); i-- > 0;) {
    if (waits[i].revents != 0 && i < readers) {
      read_reply(*owners[i]);
    } else if (waits[i].revents != 0) {
      std::ignore = owners[i]->process.write_some(owners[i]->output);  // a reader that is gone shows when it is read
    }
  }
  return true;
}

std::optional<Compiled> CompilePool::wait(std::chrono::milliseconds timeout) {
  const auto until = Clock::now() + timeout;
  for (;;) {
    // What is finished is read first: if this process was kept from looking, deadlines have passed that were kept.
    read_replies(std::chrono::milliseconds(0));
    kill_overdue();
    feed();
    if (!finished_.empty()) {
      Compiled next = std::move(finished_.front());
      finished_.pop_front();
      return next;
    }
    auto wake = until;
    for (const Worker& worker : workers_) {
      wake = worker.job ? std::min(wake, worker.deadline) : wake;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(wake - Clock::now());
    // Without an answer the caller looks at its flags, as after a signal, unless it was a worker's deadline that came.
    if (!read_replies(std::clamp(left, std::chrono::milliseconds(0), std::chrono::milliseconds(60'000))) &&
        (wake == until || busy() == 0 || Clock::now() < wake)) {
      return std::nullopt;
    }
  }
}

}  // namespace pascaline
