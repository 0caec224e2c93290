#include <nlohmann/json.hpp>

#include "report/comparison.hpp"
#include "report/document_parts.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

using Ordered = nlohmann::ordered_json;

Ordered best_json(const std::optional<ComparedBest>& side) {
  if (!side) {
    return nullptr;
  }
  return {{"best", json_time(side->best)},
          {"default", json_time(side->baseline)},
          {"config", json_config(side->config)},
          {"source_hash", clean_line(side->source_hash)},
          {"toolkit", clean_line(toolkit_text(side->toolkit))},
          {"decided", side->decided},
          {"trial", side->trial_id},
          {"sm_clock_mhz", or_null(side->sm_clock_mhz)}};
}

Ordered row_json(const ComparisonRow& row) {
  Ordered ratio;
  if (row.ratio) {
    ratio = {{"value", row.ratio->value}, {"low", row.ratio->low}, {"high", row.ratio->high}};
  }
  return {{"device", clean_line(row.device_label)},
          {"target", clean_line(row.target)},
          {"kernel", clean_line(row.kernel)},
          {"problem", clean_line(row.problem)},
          {"verdict", name_of(row.verdict)},
          {"a", best_json(row.a)},
          {"b", best_json(row.b)},
          {"ratio", std::move(ratio)},
          {"p_value", or_null(row.p_value)},
          {"same_config", or_null(row.same_config)},
          {"same_source", or_null(row.same_source)},
          {"same_toolkit", or_null(row.same_toolkit)},
          {"same_clock", or_null(row.same_clock)}};
}

Ordered side_json(const Side& side) { return {{"label", clean_line(side_label(side))}, {"sessions", side.sessions}}; }

}  // namespace

nlohmann::ordered_json comparison_json(const Comparison& comparison) {
  Ordered rows = Ordered::array();
  for (const ComparisonRow& row : comparison.rows) {
    rows.push_back(row_json(row));
  }
  Ordered summary;
  for (std::size_t i = 0; i < kVerdictCount; ++i) {
    summary[std::string(name_of(static_cast<Verdict>(i)))] = comparison.counts[i];
  }
  summary["changed_winner"] = comparison.changed_winners;
  summary["geometric_mean_ratio"] = or_null(comparison.geometric_mean_ratio);
  return {{"a", side_json(comparison.a)},
          {"b", side_json(comparison.b)},
          {"rows", std::move(rows)},
          {"summary", std::move(summary)}};
}

}  // namespace pascaline
