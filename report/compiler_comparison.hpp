#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/summary.hpp"

namespace pascaline {

/// What each compiler's best configuration of one problem takes.
struct CompilerRow {
  std::string problem;
  std::vector<std::optional<TimeSummary>> best;  ///< by compiler; nothing: it has none
  std::size_t fastest = 0;                       ///< index of the compiler with the lowest median
  double speedup = 1;                            ///< of the slowest compiler's best over the fastest's
};

/// Compilers that built the same kernels' same sources for one device, target and driver.
struct CompilerComparison {
  DeviceRow device;
  std::string target;
  std::string driver_version;
  std::vector<std::string> compilers;  ///< "nvrtc 12.9"
  std::vector<CompilerRow> rows;       ///< problems for which at least two have a usable configuration
  /// Geometric mean, over the rows that have a time of that compiler, of its best time over the fastest compiler's:
  /// what choosing for each problem gains over this compiler alone.
  std::vector<double> gain;
  std::vector<std::size_t> fastest_of;  ///< rows that each compiler is the fastest of
};

/// One for each device, target and driver under which several compilers were tried; the groups as `summarize_trials`
/// gives them. Medians are compared as they are: a small difference may be luck.
[[nodiscard]] std::vector<CompilerComparison> compare_compilers(const std::vector<DeviceSummary>& groups);

/// The same of the contexts of a report that is JSON or a page.
[[nodiscard]] std::vector<CompilerComparison> compare_compilers(const std::vector<ReportContext>& contexts);

/// A section of the Markdown report; empty without a comparison.
[[nodiscard]] std::string markdown_compilers(const std::vector<CompilerComparison>& comparisons);

}  // namespace pascaline
