#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "db/store.hpp"
#include "report/limits.hpp"

namespace pascaline {

/// What a report is about; empty fields do not narrow.
struct ReportOptions {
  std::string title = "Pascaline tuning report";
  std::string kernel{};
  std::string device{};                   ///< name of a device, whole
  std::vector<std::int64_t> sessions{};   ///< only their trials and what was decided in them
  std::size_t max_reasons = 10;           ///< kinds of failure listed for a device and toolkit
  std::string workload{};                 ///< file of a model's calls; empty: see `model_plans`; "none"
  std::filesystem::path spaces_folder{};  ///< of the workload's kernels; empty: the installed ones
  LimitSource limit_of{};                 ///< what limits winners and defaults; empty: that part is left out
  bool live = false;                      ///< it is shown while the database grows
};

struct ReportComparison;  // report/comparison.hpp

/// Markdown fit for a pull request: the comparison, if there is one; a line for each device and toolkit, which are
/// never mixed; for each the trials by status, a table of problems for each version of a kernel, and the commonest
/// failures. Long tables and failures are folded. Throws StoreError.
[[nodiscard]] std::string markdown_report(const Store& store, const ReportOptions& options = {},
                                          const ReportComparison* comparison = nullptr);

struct FieldText;  // report/fields.hpp

/// The columns of `csv_report` in their order.
[[nodiscard]] std::vector<FieldText> csv_columns();

/// One line a trial as RFC 4180 has it, after a line of column names. Throws StoreError.
[[nodiscard]] std::string csv_report(const Store& store, const ReportOptions& options = {});

}  // namespace pascaline
