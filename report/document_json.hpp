#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "report/document.hpp"

namespace pascaline {

struct ReportComparison;  // report/comparison.hpp
class FieldTable;         // report/fields.hpp

/// The document as docs/reference/report.md has it, with the comparison if there is one. All numbers are finite and all
/// text is UTF-8, so that it can be dumped as it is; a page must take its text as text, never as markup.
[[nodiscard]] nlohmann::ordered_json document_json(const ReportDocument& document,
                                                   const ReportComparison* comparison = nullptr);

/// The objects of that document, each before those in it; the first is the document.
[[nodiscard]] std::vector<const FieldTable*> report_tables();

}  // namespace pascaline
