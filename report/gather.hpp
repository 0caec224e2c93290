#pragma once

#include <string_view>

#include "report/document.hpp"
#include "report/report.hpp"

namespace pascaline {

/// `ReportOptions::workload` of a report that weighs nothing by a model's calls.
inline constexpr std::string_view kNoWorkload = "none";

/// Reads the database, all of it as it is at one moment, whoever writes to it meanwhile. What is shown of each problem
/// shrinks with their number, so that the document of a large database stays of a size that a browser takes. Throws
/// StoreError, and Error for a workload that cannot be read.
[[nodiscard]] ReportDocument gather_report(const Store& store, const ReportOptions& options = {});

}  // namespace pascaline
