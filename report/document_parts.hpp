#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "report/comparison.hpp"
#include "report/compiler_comparison.hpp"
#include "report/device_comparison.hpp"
#include "report/document.hpp"
#include "report/fields.hpp"

namespace pascaline {

/// A document with all that its JSON has.
struct WholeDocument {
  const ReportDocument* report = nullptr;
  const ReportComparison* comparison = nullptr;  ///< null: none
};

// The fields of the objects that another file's objects hold.
[[nodiscard]] const Fields<WholeDocument>& fields_of(const WholeDocument*);
[[nodiscard]] const Fields<TimeSummary>& fields_of(const TimeSummary*);
[[nodiscard]] const Fields<ReportSpeedup>& fields_of(const ReportSpeedup*);
[[nodiscard]] const Fields<ReportProblem>& fields_of(const ReportProblem*);
[[nodiscard]] const Fields<ReportLimit>& fields_of(const ReportLimit*);
[[nodiscard]] const Fields<CompilerComparison>& fields_of(const CompilerComparison*);
[[nodiscard]] const Fields<DeviceComparison>& fields_of(const DeviceComparison*);
[[nodiscard]] const Fields<ReportComparison>& fields_of(const ReportComparison*);

/// The types of type variables under their names.
[[nodiscard]] ByName<std::string> names_of(const std::vector<std::pair<std::string, ElementType>>& types);

/// Trials by status; `all`: also those that did not occur.
[[nodiscard]] ByName<std::size_t> by_status(const std::array<std::size_t, kTrialStatuses>& statuses, bool all);

}  // namespace pascaline
