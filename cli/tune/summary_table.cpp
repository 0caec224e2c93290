#include "cli/tune/summary_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "app/text.hpp"
#include "core/util/counted.hpp"
#include "report/summary.hpp"
#include "report/text.hpp"

namespace pascaline::cli {
namespace {

constexpr std::size_t kColumns = 10;
constexpr std::size_t kCompilerColumn = 8;
using Cells = std::array<std::string, kColumns>;
constexpr std::array<bool, kColumns> kRightAligned{false, false, true, true, true, true, true, true, false, false};

Cells header() {
  return {"problem", "device",     "calls",  "default us", "best us",
          "speedup", "confidence", "trials", "compiler",   "configuration"};
}

Cells cells_of(const SummaryRow& row) {
  const auto time = [](double time_us) { return time_us > 0 ? fmt::format("{:.2f}", time_us) : "-"; };
  return {clean_line(row.problem),
          clean_line(row.device),
          fmt::format("{:g}", row.count),
          time(row.default_us) + (row.baseline.empty() ? "" : "*"),
          time(row.best_us),
          row.speedup > 0 ? fmt::format("{:.2f}x", row.speedup) : "-",
          (row.tie              ? "tie"
           : row.confidence > 0 ? fmt::format("{:.3f}", row.confidence)
                                : "-") +
              std::string(row.provisional ? " provisional" : ""),
          fmt::format("{}", row.trials),
          clean_line(row.compiler),
          row.config.empty() ? "-" : clean_line(row.config)};
}

std::string line_of(const Cells& cells, const std::array<std::size_t, kColumns>& widths) {
  std::string line;
  for (std::size_t column = 0; column < kColumns; ++column) {
    if (widths[column] == 0) {
      continue;
    }
    const std::string padding(widths[column] - columns_of(cells[column]), ' ');
    line += column == 0 ? "" : "  ";
    line += kRightAligned[column] ? padding + cells[column] : cells[column] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string footnotes(const std::vector<SummaryRow>& rows) {
  std::string text;
  for (const SummaryRow& row : rows) {
    if (!row.baseline.empty()) {
      text +=
          fmt::format("* {}: time of the usable configuration nearest to the default ({}): {}\n",
                      clean_line(row.problem), clean_line(default_fate(row.baseline_why)), clean_line(row.baseline));
    }
  }
  if (std::any_of(rows.begin(), rows.end(), [](const SummaryRow& row) { return row.provisional; })) {
    text += fmt::format("{}\n", kProvisionalMeaning);
  }
  return text;
}

// Over the rows of one device, or of all if it is empty.
std::string mean_line(const std::vector<SummaryRow>& rows, const std::string& device) {
  std::vector<double> speedups;
  int left_out = 0;
  for (const SummaryRow& row : rows) {
    if (!device.empty() && row.device != device) {
      continue;
    }
    if (row.speedup > 0) {
      speedups.push_back(row.speedup);
    } else {
      ++left_out;
    }
  }
  const std::optional<double> mean = mean_speedup(speedups);
  return mean ? fmt::format("mean speedup over defaults{}: {:.2f}x (geometric, of {}{})\n",
                            device.empty() ? "" : " on " + clean_line(device), *mean,
                            counted(speedups.size(), "decided problem"),
                            left_out > 0 ? fmt::format("; {} without both times", left_out) : "")
              : "";
}

// Whether a problem was tuned on several devices, so that one mean would count it more than once.
bool repeats_problems(const std::vector<SummaryRow>& rows) {
  std::set<std::string> seen;
  return !std::all_of(rows.begin(), rows.end(), [&](const SummaryRow& row) { return seen.insert(row.problem).second; });
}

}  // namespace

std::string summary_table(const std::vector<SummaryRow>& rows) {
  if (rows.empty()) {
    return {};
  }
  std::vector<Cells> lines{header()};
  std::transform(rows.begin(), rows.end(), std::back_inserter(lines), cells_of);
  if (std::all_of(rows.begin(), rows.end(), [](const SummaryRow& row) { return row.compiler.empty(); })) {
    lines.front()[kCompilerColumn].clear();
  }
  std::array<std::size_t, kColumns> widths{};
  for (const Cells& cells : lines) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      widths[column] = std::max(widths[column], columns_of(cells[column]));
    }
  }
  std::string text;
  for (const Cells& cells : lines) {
    text += line_of(cells, widths);
  }
  text += footnotes(rows);
  if (!repeats_problems(rows)) {
    return text + mean_line(rows, "");
  }
  std::set<std::string> devices;
  for (const SummaryRow& row : rows) {
    if (devices.insert(row.device).second) {
      text += mean_line(rows, row.device);
    }
  }
  return text;
}

}  // namespace pascaline::cli
