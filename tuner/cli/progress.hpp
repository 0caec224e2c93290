#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tuner/sweep.hpp"

namespace pascaline::cli {

/// Shows a sweep as it goes: a line a problem and a line an improvement; on a terminal also a status line that is
/// rewritten, elsewhere a plain line every few seconds.
class Progress {
 public:
  explicit Progress(bool quiet);

  /// Functions to hand to `run_sweep`; this object must outlive them.
  [[nodiscard]] SweepEvents events();
  /// The table of winners, and where things stand.
  void summary(const SweepSummary& summary, const SweepOptions& options);

 private:
  using Clock = std::chrono::steady_clock;
  void problem(std::size_t index, std::size_t count, const SweepProblem& wanted, std::size_t known);
  void trial(const Trial& trial, int done, int planned, double best_us, double default_us);
  void winner(const SweepProblem& wanted, const FinalsResult& result);
  void line(const std::string& text);
  void status(const std::string& text);

  bool quiet_;
  bool terminal_;
  Clock::time_point started_ = Clock::now();
  Clock::time_point problem_started_ = started_;
  Clock::time_point last_line_ = started_;
  double announced_us_ = 0;
  int failed_ = 0;
  std::string heading_;
  std::vector<std::string> rows_;
};

}  // namespace pascaline::cli
