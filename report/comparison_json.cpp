#include "core/util/shown_text.hpp"
#include "report/document_parts.hpp"
#include "report/text.hpp"

namespace pascaline {

template <>
inline constexpr std::size_t kEnumerators<Verdict> = kVerdictCount;

namespace {

struct ComparisonSummary {
  const ReportComparison* comparison = nullptr;
};

const Fields<ComparisonSummary>& fields_of(const ComparisonSummary*) {
  static const auto fields = [] {
    Fields<ComparisonSummary> counts("comparison_summary", "Number of rows by verdict.");
    for (std::size_t i = 0; i < kVerdictCount; ++i) {
      counts.add(
          std::string(name_of(static_cast<Verdict>(i))),
          [i](const ComparisonSummary& of) { return of.comparison->counts[i]; }, "Rows with this verdict.");
    }
    counts.add(
        "changed_winner", [](const ComparisonSummary& of) { return of.comparison->changed_winners; },
        "Rows whose two configurations differ.");
    counts.add(
        "geometric_mean_ratio", [](const ComparisonSummary& of) { return of.comparison->geometric_mean_ratio; },
        "Geometric mean of the ratios; null without one.");
    return counts;
  }();
  return fields;
}

// The member on one line.
template <typename Owner>
auto line_field(std::string Owner::*member) {
  return [member](const Owner& owner) { return clean_line(owner.*member); };
}

}  // namespace

const Fields<TimeRatio>& fields_of(const TimeRatio*) {
  static const auto fields =
      Fields<TimeRatio>("ratio", "Time of `b` / time of `a`: above 1 where `a` is faster.")
          .add("value", &TimeRatio::value, "Ratio of the medians.")
          .add("low", &TimeRatio::low, "Lower end of the interval that the medians' intervals allow.")
          .add("high", &TimeRatio::high, "Upper end of that interval.");
  return fields;
}

const Fields<ComparedBest>& fields_of(const ComparedBest*) {
  static const auto fields =
      Fields<ComparedBest>("comparison_best", "The best of a problem on one side.")
          .add("best", &ComparedBest::best, "Its time.")
          .add("default", &ComparedBest::baseline, "Time of the default.")
          .add("config", &ComparedBest::config, "Its configuration.")
          .add("source_hash", line_field(&ComparedBest::source_hash), "Hash of the kernel's source with headers.")
          .add(
              "toolkit", [](const ComparedBest& of) { return clean_line(toolkit_text(of.toolkit)); },
              "Compiler, target and driver.")
          .add("decided", &ComparedBest::decided, "It is from finals.")
          .add("trial", &ComparedBest::trial_id, "Row in that side's database.")
          .add("sm_clock_mhz", &ComparedBest::sm_clock_mhz, "Mean over the counted samples.", "MHz");
  return fields;
}

const Fields<ComparisonRow>& fields_of(const ComparisonRow*) {
  static const auto fields =
      Fields<ComparisonRow>("comparison_row", "One problem on one device for one target.")
          .add("device", line_field(&ComparisonRow::device_label), "Name of the device.")
          .add("target", line_field(&ComparisonRow::target), "`sm_61`, `compute_61` (PTX) or `host`.")
          .add("kernel", line_field(&ComparisonRow::kernel), "Name of the kernel.")
          .add("problem", line_field(&ComparisonRow::problem), "The problem as text.")
          .add("verdict", &ComparisonRow::verdict, "Verdict on `a`.")
          .add("a", &ComparisonRow::a, "What is reported; null: `a` does not have the problem.")
          .add("b", &ComparisonRow::b, "The older side; null: `b` does not have the problem.")
          .add("ratio", &ComparisonRow::ratio, "Null where a side or a positive time is missing.")
          .add("p_value", &ComparisonRow::p_value, "Of the Mann-Whitney test, adjusted for all rows.")
          .add("same_config", &ComparisonRow::same_config, "Both have the same configuration; null: unknown.")
          .add("same_source", &ComparisonRow::same_source, "Both have the same source; null: unknown.")
          .add("same_toolkit", &ComparisonRow::same_toolkit, "Both have the same toolkit; null: unknown.")
          .add("same_clock", &ComparisonRow::same_clock, "The mean SM clocks differ by 1 % or less; null: unknown.");
  return fields;
}

const Fields<Side>& fields_of(const Side*) {
  static const auto fields =
      Fields<Side>("comparison_side", "One of the two that are compared.")
          .add(
              "label", [](const Side& side) { return clean_line(side_label(side)); }, "Database and sessions as text.")
          .add("sessions", &Side::sessions, "Rows of its sessions; empty: all.");
  return fields;
}

const Fields<ReportComparison>& fields_of(const ReportComparison*) {
  static const auto fields =
      Fields<ReportComparison>("comparison", "Comparison with an older side ([method](../report.md#comparison)).")
          .add("a", &ReportComparison::a, "What is reported.")
          .add("b", &ReportComparison::b, "The older side.")
          .add("rows", &ReportComparison::rows, "In the order of the database of `a`, then problems that only `b` has.")
          .add(
              "summary", [](const ReportComparison& of) { return ComparisonSummary{&of}; }, "Counts.");
  return fields;
}

nlohmann::ordered_json comparison_json(const ReportComparison& comparison) {
  return fields_of(&comparison).json(comparison);
}

}  // namespace pascaline
