#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "db/store.hpp"

namespace pascaline {

/// What a report is about; empty fields do not narrow.
struct ReportOptions {
  std::string title = "Pascaline tuning report";
  std::string kernel{};
  std::string device{};          ///< name of a device, whole
  std::size_t max_reasons = 10;  ///< kinds of failure listed for a device and toolkit
  std::string workload{};        ///< file of a model's calls; empty: the one that comes with the program; "none"
  std::filesystem::path spaces_folder{};  ///< of the workload's kernels; empty: the installed ones
  bool live = false;                      ///< it is shown while the database grows
};

/// Markdown fit for a pull request: for each device and toolkit, which are never mixed, the trials by status, a table
/// of problems for each version of a kernel, and the commonest failures. Throws StoreError.
[[nodiscard]] std::string markdown_report(const Store& store, const ReportOptions& options = {});

/// One line a trial as RFC 4180 has it, after a line of column names; docs/report.md describes the columns. Throws
/// StoreError.
[[nodiscard]] std::string csv_report(const Store& store, const ReportOptions& options = {});

}  // namespace pascaline
