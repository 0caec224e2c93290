#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/document.hpp"

namespace pascaline {

struct Comparison;  // report/comparison.hpp

/// The document as docs/report.schema.json has it, with the comparison if there is one. All numbers are finite and all
/// text is UTF-8, so that it can be dumped as it is; a page must take its text as text, never as markup.
[[nodiscard]] nlohmann::ordered_json document_json(const ReportDocument& document,
                                                   const Comparison* comparison = nullptr);

}  // namespace pascaline
