#include <limits>
#include <optional>
#include <string>

#include "core/util/statistics.hpp"
#include "db/merge_rows.hpp"
#include "db/rows.hpp"

namespace pascaline {
namespace {

// Below this the interval of a median is only the range of its samples, and says little.
constexpr int kFewestSamples = 6;

// A decision as far as it says how well supported it is, and which it is.
struct Decision {
  std::int64_t trial = 0;
  bool in_finals = false;
  double confidence = 0;
  std::int64_t decided_unix_ms = 0;
  TimeSummary time;
};

Decision read_decision(Query& row) {
  Decision decision;
  decision.trial = row.integer();
  decision.in_finals = row.flag();
  decision.confidence = row.real();
  decision.decided_unix_ms = row.integer();
  decision.time = read_summary(row).value_or(TimeSummary{});
  return decision;
}

double width(const Decision& decision) {
  return decision.time.count < kFewestSamples ? std::numeric_limits<double>::infinity()
                                              : relative_half_width(decision.time);
}

// What finals decided is better founded than any decision from the search's trials, however clear that looks.
bool is_better(const Decision& a, const Decision& b) {
  if (a.in_finals != b.in_finals) {
    return a.in_finals;
  }
  if (a.confidence != b.confidence) {
    return a.confidence > b.confidence;
  }
  if (width(a) != width(b)) {
    return width(a) < width(b);
  }
  return a.decided_unix_ms > b.decided_unix_ms;
}

struct WinnerKey {
  std::int64_t device = 0;
  std::int64_t toolkit = 0;
  std::int64_t kernel = 0;
  std::int64_t problem = 0;
  std::string objective{};
};

std::optional<Decision> decision_here(Merge& merge, const WinnerKey& key) {
  Query row = merge.to.query(
      "SELECT w.trial_id, t.stage = 'finals', w.confidence, w.decided_unix_ms, t.median_us, t.low_us, t.high_us, "
      "t.sample_count FROM winners w JOIN trials t ON t.id = w.trial_id WHERE w.device_id = ? AND w.toolkit_id = ? "
      "AND w.kernel_id = ? AND w.problem_id = ? AND w.objective = ?");
  row.bind(key.device, key.toolkit, key.kernel, key.problem, key.objective);
  return row.step() ? std::optional(read_decision(row)) : std::nullopt;
}

// Whether the other's decision is to be stored; counts it.
bool is_wanted(MergeCounts& counts, const Decision& other, const std::optional<Decision>& here) {
  if (!here) {
    ++counts.winners_added;
    return true;
  }
  if (here->trial == other.trial && here->confidence == other.confidence &&
      here->decided_unix_ms == other.decided_unix_ms) {
    ++counts.winners_known;
    return false;
  }
  const bool better = is_better(other, *here);
  ++(better ? counts.winners_replaced : counts.winners_kept);
  return better;
}

}  // namespace

void merge_winners(Merge& merge) {
  Query row = merge_read(
      merge,
      "SELECT w.device_id, w.toolkit_id, w.kernel_id, w.problem_id, w.objective, t.status = 'ok' AND t.device_id = "
      "w.device_id AND "
      "t.toolkit_id = w.toolkit_id AND t.kernel_id = w.kernel_id AND t.problem_id = w.problem_id, w.trial_id, "
      "t.stage = 'finals', w.confidence, w.decided_unix_ms, t.median_us, t.low_us, t.high_us, t.sample_count, "
      "w.baseline_median_us, w.baseline_low_us, w.baseline_high_us, w.baseline_count, w.baseline_score FROM winners w "
      "JOIN "
      "trials t ON t.id = w.trial_id "
      "ORDER BY w.decided_unix_ms, w.trial_id");
  while (merge_next(merge, row)) {
    WinnerKey key;
    key.device = merged_id(merge, merge.devices, row.integer(), "devices");
    key.toolkit = merged_id(merge, merge.toolkits, row.integer(), "toolkits");
    key.kernel = merged_id(merge, merge.kernels, row.integer(), "kernels");
    key.problem = merged_id(merge, merge.problems, row.integer(), "problems");
    key.objective = row.text();
    if (!objective_from(key.objective)) {
      merge_damaged(merge, "a winner has an objective that this program does not know");
    }
    if (!row.flag()) {
      merge_damaged(merge, "a winner is not an `ok` trial of its key");
    }
    Decision other = read_decision(row);
    other.trial = merged_id(merge, merge.trials, other.trial, "trials");
    if (!is_wanted(merge.counts, other, decision_here(merge, key))) {
      continue;
    }
    Query replace = merge.to.query(
        "INSERT OR REPLACE INTO winners (device_id, toolkit_id, kernel_id, problem_id, objective, trial_id, "
        "confidence, "
        "decided_unix_ms, baseline_median_us, baseline_low_us, baseline_high_us, baseline_count, baseline_score) "
        "VALUES "
        "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    replace.bind(key.device, key.toolkit, key.kernel, key.problem, key.objective, other.trial, other.confidence,
                 other.decided_unix_ms);
    row.copy_to(replace, 9, 5);
    replace.run();
  }
}

}  // namespace pascaline
