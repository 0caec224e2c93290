#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace pascaline {

/// The report document (docs/reference/report.md) as one self-contained HTML page: styles, scripts and charts are
/// inside it, and its Content-Security-Policy forbids everything else. Only where the document's `live` is true may the
/// page ask the server that it came from for newer documents. Texts of the document are shown as text, whatever is in
/// them; bytes that are not UTF-8 are replaced by U+FFFD.
[[nodiscard]] std::string html_report(const nlohmann::ordered_json& document);

/// What the page's Content-Security-Policy is, for a server to send as a header as well.
[[nodiscard]] std::string html_report_policy(bool live);

}  // namespace pascaline
