#pragma once

#include <string>
#include <vector>

namespace pascaline::cli {

/// How the tuning of one problem on one device ended.
struct SummaryRow {
  std::string problem;
  std::string device;
  double count = 1;       ///< calls of the model
  double default_us = 0;  ///< of the baseline; 0: there is none
  double best_us = 0;     ///< 0: nothing is usable
  double speedup = 0;     ///< baseline over best; 0: there is none
  double confidence = 0;  ///< that the winner is not slower than the baseline
  bool tie = false;       ///< nothing was significantly faster than the baseline
  int trials = 0;
  std::string config{};        ///< the winner's
  std::string compiler{};      ///< the winner's, where there was a choice
  bool provisional = false;    ///< decided without finals
  std::string baseline{};      ///< the configuration that stands in for the default; empty: the default itself
  std::string baseline_why{};  ///< what became of the default then
};

/// The rows as aligned columns, and below them the geometric mean of their speedups. Each device has a mean of its own
/// if they tuned the same problems. Problems without both times are left out of it, and their number is said; so is
/// which rows have another baseline than the default, and what "provisional" means. Compilers have a column if
/// a row names one. Ends with a newline; empty without rows.
[[nodiscard]] std::string summary_table(const std::vector<SummaryRow>& rows);

}  // namespace pascaline::cli
