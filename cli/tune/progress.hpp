#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/tune/live_view.hpp"
#include "cli/tune/summary_table.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline::cli {

/// Shows a sweep as it goes: a line a problem and a line an improvement, the live view below them, and at the end a
/// table.
class Progress {
 public:
  /// Throws Error if the log file cannot be opened.
  explicit Progress(LiveViewOptions options) : view_(std::move(options)) {}

  /// Functions to hand to `run_sweep`; this object must outlive them.
  [[nodiscard]] SweepEvents events();
  /// The table of winners, and where things stand.
  void summary(const SweepSummary& summary, const SweepOptions& options);

 private:
  void problem(const std::string& device, const SweepProblem& wanted, std::size_t known);
  void trial(const Trial& trial, int done, double best_us, double default_us);
  void winner(const std::string& device, const SweepProblem& wanted, const FinalsResult& result, int trials);

  /// Below the problem's heading, where a device has turned to it again since.
  void tell_of(const std::string& problem, const std::string& line);

  LiveView view_;
  std::set<std::string> headings_;                            ///< that were shown
  std::map<std::string, std::string> again_;                  ///< by problem, to be shown again if there is news below
  std::vector<std::pair<std::string, double>> announced_us_;  ///< the best that was told, by problem
  std::vector<SummaryRow> rows_;
};

}  // namespace pascaline::cli
