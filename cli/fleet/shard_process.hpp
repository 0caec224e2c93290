#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace pascaline::cli {

/// A process that works on a shard, in a group of its own so that a terminal's Ctrl-C reaches it only through whoever
/// started it. It is killed when that process ends, whatever ends it: whoever takes the shard over
/// must be the only one that writes its database. What it prints goes to a file. Move-only.
class ShardProcess {
 public:
  /// Throws Error if it cannot be started.
  ShardProcess(const std::vector<std::string>& command, const std::filesystem::path& output);
  ShardProcess(const ShardProcess&) = delete;
  ShardProcess& operator=(const ShardProcess&) = delete;
  ~ShardProcess();

  /// Whether it has ended; then `exit_code` is known.
  [[nodiscard]] bool has_ended();
  /// Its exit code, or 128 and the signal that ended it.
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }
  [[nodiscard]] int process_id() const noexcept { return process_; }
  /// Asks it to end properly (SIGTERM).
  void ask_to_end() const noexcept;
  /// Ends it and its workers at once.
  void kill() noexcept;

 private:
  int process_ = -1;
  bool ended_ = false;
  int exit_code_ = 0;
};

/// The last line of a file that is not empty, for a message; empty if there is none.
[[nodiscard]] std::string last_line_of(const std::filesystem::path& file);

}  // namespace pascaline::cli
