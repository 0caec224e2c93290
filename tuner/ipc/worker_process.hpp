#pragma once

#include <mutex>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"

namespace pascaline {

/// A child process that is written to and read from over pipes, in a session of its own, so that a terminal's Ctrl-C
/// does not reach it and everything it starts can be found. Move-only; destroyed, it ends with all that it started.
class WorkerProcess {
 public:
  WorkerProcess() = default;
  /// Starts `command` (a path and its arguments); throws Error if that fails.
  explicit WorkerProcess(std::vector<std::string> command);
  WorkerProcess(WorkerProcess&& other) noexcept { swap(other); }
  WorkerProcess& operator=(WorkerProcess&& other) noexcept {
    WorkerProcess(std::move(other)).swap(*this);
    return *this;
  }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess() { end(); }

  [[nodiscard]] explicit operator bool() const noexcept { return process_ > 0; }
  [[nodiscard]] int process() const noexcept { return process_; }
  /// Descriptor of its standard output, for poll.
  [[nodiscard]] int output() const noexcept { return from_; }

  /// Descriptor of its standard input, for poll.
  [[nodiscard]] int input() const noexcept { return to_; }

  /// Writes what the process's pipe has room for and takes that off `text`, without waiting; false if it does not read
  /// any more.
  [[nodiscard]] bool write_some(std::string& text) const noexcept;
  /// Appends what it wrote to `text`; false once there is nothing more to come.
  [[nodiscard]] bool read(std::string& text) const;
  /// Ends it, if it has not ended, and what it started; returns the wait status.
  int end() noexcept;
  void swap(WorkerProcess& other) noexcept;

 private:
  int process_ = -1;
  int to_ = -1;
  int from_ = -1;
};

/// Ends a worker whose input has been closed, without taking down what it holds.
[[noreturn]] void end_at_once() noexcept;

/// A worker's messages to its parent, from any thread: the standard output that it was started with, which this takes
/// for itself. What a kernel or a library prints from then on goes to standard error and not among the messages.
class MessageWriter {
 public:
  MessageWriter();
  MessageWriter(const MessageWriter&) = delete;
  MessageWriter& operator=(const MessageWriter&) = delete;
  ~MessageWriter();
  /// Once the parent reads no more, it has ended or is ending: then so does this process, at once and silently.
  void send(const nlohmann::json& message);

 private:
  std::mutex mutex_;
  int descriptor_;
};

/// Of a worker: whether nobody can write to its standard input any more, because its parent ended or gave it up.
[[nodiscard]] bool parent_is_gone() noexcept;

/// Whether a process that could not be started might be a little later: the machine was short of something.
[[nodiscard]] bool may_start_later(const Error& error) noexcept;

/// A wait status in words: "signal 9 (Killed)", "exit code 1".
[[nodiscard]] std::string ending_of(int wait_status);

}  // namespace pascaline
