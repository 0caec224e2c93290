#include "report/markdown_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/util/counted.hpp"
#include "report/summary.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

std::string joined(std::string_view head, const std::vector<std::string>& rows, std::size_t from, std::size_t to) {
  std::string out(head);
  out += '\n';
  for (std::size_t i = from; i < to; ++i) {
    out += rows[i] + "\n";
  }
  return out;
}

}  // namespace

std::string markdown_details(std::string_view summary, std::string_view body) {
  return fmt::format("<details><summary>{}</summary>\n\n{}\n</details>\n\n", summary, body);
}

std::string markdown_table(std::string_view head, const std::vector<std::string>& rows, std::size_t open) {
  const std::size_t shown = std::min(open, rows.size());
  std::string out = shown > 0 ? joined(head, rows, 0, shown) + "\n" : "";
  if (shown < rows.size()) {
    const std::size_t folded = rows.size() - shown;
    const std::string summary = shown > 0 ? fmt::format("{} more", folded) : counted(folded, "row");
    out += markdown_details(summary, joined(head, rows, shown, rows.size()));
  }
  return out;
}

std::string median_cell(const std::optional<TimeSummary>& time) {
  return time ? short_number(time->median_us) : std::string(kNoValue);
}

std::string speedup_cell(const std::optional<TimeSummary>& baseline, const std::optional<TimeSummary>& best) {
  const std::optional<ReportSpeedup> speedup = speedup_between(baseline, best);
  return speedup ? fmt::format("{:.2f}× ({:.2f}–{:.2f})", speedup->value, speedup->low, speedup->high)
                 : std::string(kNoValue);
}

}  // namespace pascaline
