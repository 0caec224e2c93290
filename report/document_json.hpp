#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/document.hpp"

namespace pascaline {

/// The document as docs/report.schema.json has it. All numbers are finite and all text is UTF-8, so that it can be
/// dumped as it is; a page must take its text as text, never as markup.
[[nodiscard]] nlohmann::ordered_json document_json(const ReportDocument& document);

}  // namespace pascaline
