#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "core/device/emulator_name.hpp"
#include "core/util/counted.hpp"
#include "report/comparison.hpp"
#include "report/markdown_parts.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

using Rows = std::vector<const ComparisonRow*>;

// What is said of a side of a comparison as text.
using Told = std::function<std::string(const ComparedBest&)>;

// Parameters whose values differ, "TILE 64 → 128", the first few of them; one that a side has not is "–" there.
std::string changed_settings(const Config& before, const Config& now) {
  constexpr std::size_t kNamed = 5;
  std::set<std::string> names;
  for (const Config* config : {&before, &now}) {
    for (const auto& [name, value] : config->settings()) {
      names.insert(name);
    }
  }
  const auto told = [](const Value* value) { return value != nullptr ? to_text(*value) : std::string(kNoValue); };
  std::string text;
  std::size_t count = 0;
  for (const std::string& name : names) {
    const std::string from = told(before.find(name));
    const std::string to = told(now.find(name));
    if (from != to && ++count <= kNamed) {
      text += fmt::format("{}{} {} → {}", text.empty() ? "" : ", ", name, from, to);
    }
  }
  return count > kNamed ? fmt::format("{} and {} more", text, count - kNamed) : text;
}

std::string undecided_note(const ComparisonRow& row) {
  if (row.a->decided != row.b->decided) {
    return row.a->decided ? "undecided before" : "undecided now";
  }
  return row.a->decided ? "" : "undecided";
}

// What else differs between the two sides: a difference in time may come from it.
std::string notes_cell(const ComparisonRow& row) {
  std::vector<std::string> notes;
  const auto changed = [&](const std::optional<bool>& same, std::string_view what, const Told& told) {
    if (same == false) {
      notes.push_back(fmt::format("{}: {} → {}", what, told(*row.b), told(*row.a)));
    }
  };
  if (!row.p_value) {
    notes.emplace_back("too few samples");
  }
  changed(row.same_source, "source", [](const ComparedBest& side) { return side.source_hash.substr(0, 8); });
  changed(row.same_toolkit, "toolkit", [](const ComparedBest& side) { return toolkit_text(side.toolkit); });
  changed(row.same_clock, "SM clock",
          [](const ComparedBest& side) { return fmt::format("{:.0f} MHz", side.sm_clock_mhz.value_or(0)); });
  notes.push_back(undecided_note(row));
  if (row.same_config == false) {
    notes.push_back("winner: " + changed_settings(row.b->config, row.a->config));
  }
  std::string cell;
  for (const std::string& note : notes) {
    cell += note.empty() ? "" : (cell.empty() ? "" : "; ") + note;
  }
  return markdown_escape(cell);
}

// Change of the time in percent: below 0 is faster.
std::string change_cell(const ComparisonRow& row) {
  if (!row.ratio) {
    return std::string(kNoValue);
  }
  const auto percent = [](double ratio) { return (1 / ratio - 1) * 100; };
  return fmt::format("{:+.1f} % ({:+.1f} to {:+.1f})", percent(row.ratio->value), percent(row.ratio->high),
                     percent(row.ratio->low));
}

std::string p_cell(const ComparisonRow& row) {
  if (!row.p_value) {
    return std::string(kNoValue);
  }
  return *row.p_value < 0.001 ? "< 0.001" : fmt::format("{:.3f}", *row.p_value);
}

// Tables begin with the device only where there is more than one.
class Sections {
 public:
  explicit Sections(const ReportComparison& comparison) : comparison_(comparison) {
    std::set<std::string> places;
    for (const ComparisonRow& row : comparison.rows) {
      places.insert(place_text(row));
    }
    several_places_ = places.size() > 1;
  }

  [[nodiscard]] std::string both(std::string_view title, Rows rows, bool worst_first) const {
    std::stable_sort(rows.begin(), rows.end(), [&](const ComparisonRow* x, const ComparisonRow* y) {
      const double left = x->ratio ? x->ratio->value : 1;
      const double right = y->ratio ? y->ratio->value : 1;
      return worst_first ? left < right : left > right;
    });
    std::vector<std::string> lines;
    for (const ComparisonRow* row : rows) {
      lines.push_back(fmt::format("{} {} | {} | {} | {} | {} |", start(*row), short_number(row->b->best.median_us),
                                  short_number(row->a->best.median_us), change_cell(*row), p_cell(*row),
                                  notes_cell(*row)));
    }
    return section(title, "Before, µs | Now, µs | Time (interval) | p | Notes |", "--:|--:|--:|--:|---|", lines);
  }

  [[nodiscard]] std::string single(std::string_view title, const Rows& rows) const {
    std::vector<std::string> lines;
    for (const ComparisonRow* row : rows) {
      const ComparedBest& side = row->a ? *row->a : *row->b;
      lines.push_back(fmt::format("{} {} | {} | {} | {} |", start(*row), median_cell(side.baseline),
                                  short_number(side.best.median_us), speedup_cell(side.baseline, side.best),
                                  markdown_escape(side.config.text())));
    }
    return section(title, "Default, µs | Best, µs | Speedup (interval) | Configuration |", "--:|--:|--:|---|", lines);
  }

  [[nodiscard]] Rows with(Verdict verdict) const {
    return rows_where([verdict](const ComparisonRow& row) { return row.verdict == verdict; });
  }
  [[nodiscard]] Rows rows_where(const std::function<bool(const ComparisonRow&)>& wanted) const {
    Rows rows;
    for (const ComparisonRow& row : comparison_.rows) {
      if (wanted(row)) {
        rows.push_back(&row);
      }
    }
    return rows;
  }

 private:
  [[nodiscard]] static std::string place_text(const ComparisonRow& row) {
    return fmt::format("{}, {}", row.device_label, shown_architecture(row.target));
  }
  [[nodiscard]] std::string start(const ComparisonRow& row) const {
    const std::string place = several_places_ ? markdown_escape(place_text(row)) + " | " : "";
    return fmt::format("| {}{} |", place, markdown_escape(row.problem));
  }
  [[nodiscard]] std::string section(std::string_view title, std::string_view columns, std::string_view alignment,
                                    const std::vector<std::string>& lines) const {
    if (lines.empty()) {
      return {};
    }
    const std::string_view device = several_places_ ? "Device | " : "";
    const std::string_view device_alignment = several_places_ ? "---|" : "";
    return fmt::format("### {}: {}\n\n", title, lines.size()) +
           markdown_table(fmt::format("| {}Problem | {}\n|{}---|{}", device, columns, device_alignment, alignment),
                          lines);
  }

  const ReportComparison& comparison_;
  bool several_places_ = false;
};

std::string summary_line(const ReportComparison& comparison) {
  const auto count = [&](Verdict verdict) { return comparison.counts[static_cast<std::size_t>(verdict)]; };
  const std::size_t in_both =
      count(Verdict::faster) + count(Verdict::slower) + count(Verdict::same) + count(Verdict::unclear);
  std::string line = fmt::format(
      "Now is {}, before is {}. **{} slower, {} faster**, {} the same, {} unclear, {} new, {} vanished; {} with a "
      "different winner.",
      markdown_escape(side_label(comparison.a)), markdown_escape(side_label(comparison.b)), count(Verdict::slower),
      count(Verdict::faster), count(Verdict::same), count(Verdict::unclear), count(Verdict::appeared),
      count(Verdict::vanished), comparison.changed_winners);
  if (comparison.geometric_mean_ratio) {
    line += fmt::format(" The geometric mean over {} is a change of {:+.1f} % in time.",
                        counted(in_both, "problem") + " in both", (1 / *comparison.geometric_mean_ratio - 1) * 100);
  }
  return line + "\n\n";
}

}  // namespace

std::string markdown_comparison(const ReportComparison& comparison) {
  std::string out = "## Comparison\n\n" + summary_line(comparison);
  if (comparison.rows.empty()) {
    return out + "Neither side has a configuration that ran correctly.\n\n";
  }
  const Sections sections(comparison);
  out += sections.both("Slower", sections.with(Verdict::slower), true);
  out += sections.both("Faster", sections.with(Verdict::faster), false);
  out += sections.both("Unclear", sections.with(Verdict::unclear), true);
  out += sections.single("New", sections.with(Verdict::appeared));
  out += sections.single("Vanished", sections.with(Verdict::vanished));
  out += sections.both("As fast, with a different winner", sections.rows_where([](const ComparisonRow& row) {
    return row.verdict == Verdict::same && row.same_config == false;
  }),
                       true);
  out +=
      "Slower and faster: by at least 1 %, with 95 % intervals that do not overlap and a Mann-Whitney test whose p, ";
  out += "adjusted for all rows (Holm), is 0.05 or less. The same: by no more than 5 % either way. ";
  out += "Unclear: the samples cannot tell.\n\n";
  return out;
}

}  // namespace pascaline
