#pragma once

#include <string>
#include <vector>

namespace pascaline::cli {

/// How the tuning of one problem on one device ended.
struct SummaryRow {
  std::string problem;
  std::string device;
  double count = 1;       ///< calls of the model
  double default_us = 0;  ///< 0: the default is not usable
  double best_us = 0;     ///< 0: nothing is usable
  double gain = 0;        ///< default over best; 0: there is none
  double confidence = 0;  ///< that the winner is not slower than the default
  bool tie = false;       ///< nothing was significantly faster than the default
  int trials = 0;
  std::string config;  ///< the winner's
};

/// The rows as aligned columns, and below them what the model spends in these kernels: counts times times, before and
/// after. Each device has a total of its own if they tuned the same problems. Problems without both times are left
/// out of the totals, and their number is said. Ends with a newline; empty without rows.
[[nodiscard]] std::string summary_table(const std::vector<SummaryRow>& rows);

}  // namespace pascaline::cli
