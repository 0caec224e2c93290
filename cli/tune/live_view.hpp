#pragma once

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tuner/sweep/sweep_view.hpp"

namespace pascaline::cli {

/// Two lines a device and one of totals, as wide as they come and without control characters.
[[nodiscard]] std::vector<std::string> view_lines(const SweepView& view);

struct LiveViewOptions {
  bool quiet = false;       ///< write nothing but the log
  bool terminal = false;    ///< `out` is one; with TERM unset or "dumb" it is written to as if it were none
  int columns = 0;          ///< 0: ask the terminal at each redraw
  int rows = 0;             ///< 0: ask
  std::FILE* out = stdout;  ///< must outlive the view
  std::optional<std::filesystem::path> log{};  ///< appended to
  std::function<std::chrono::steady_clock::time_point()> now = [] { return std::chrono::steady_clock::now(); };
};

/// Shows a sweep as it goes: lasting lines, and below them, on a terminal, a block that is redrawn in place at most
/// five times a second; elsewhere a plain line every ten seconds if anything has changed. Threads may share it.
class LiveView {
 public:
  /// Throws Error naming the log file if it cannot be opened.
  explicit LiveView(LiveViewOptions options);
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;
  ~LiveView();

  /// A line (or several) that stays, also in the log with the local time. A log that cannot be written is given up
  /// with a warning on standard error.
  void line(const std::string& text);
  void update(const SweepView& view);
  /// Takes the block away; another update brings it back.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  struct Closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };

  void redraw(const std::string& above);
  void plain_status(const SweepView& view);
  [[nodiscard]] bool logged(const std::string& text);
  void give_up_log(int reason);
  [[nodiscard]] std::vector<std::string> fitting_lines() const;
  void write(const std::string& text) const;

  LiveViewOptions options_;
  std::mutex mutex_;
  std::unique_ptr<std::FILE, Closer> log_;
  std::optional<SweepView> shown_;
  std::size_t drawn_ = 0;  ///< lines of the block on the terminal, above the cursor
  std::optional<Clock::time_point> last_drawn_;
  Clock::time_point last_status_;
  std::string last_status_text_;
};

}  // namespace pascaline::cli
