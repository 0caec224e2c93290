#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "core/objective.hpp"
#include "core/trial.hpp"
#include "db/merge_rows.hpp"
#include "db/rows.hpp"
#include "db/trial_columns.hpp"

namespace pascaline {
namespace {

// Below this the interval of a median is only the range of its samples, and says little.
constexpr int kFewestSamples = 6;

// What is decided for: a key of measurements and an objective.
using WinnerKey = std::pair<DecisionKey, std::string>;

// A decision that counts, as far as it says how well founded it is and which it is.
struct Candidate {
  std::int64_t trial = 0;
  std::int64_t decided_unix_ms = 0;
  bool proven_wrong = false;  // some trial of its configuration gave a wrong result
  bool in_finals = false;
  double confidence = 0;
  std::optional<double> baseline_score;
  std::optional<TimeSummary> baseline;
  TimeSummary time;
  std::optional<double> score;  // the objective's value, of another than time
  std::string config;
  std::string session;
  std::int64_t started_unix_ms = 0;
};

constexpr std::string_view kCandidates =
    "SELECT d.trial_id, d.decided_unix_ms, EXISTS (SELECT 1 FROM trials b WHERE b.device_id = d.device_id AND "
    "b.toolkit_id = d.toolkit_id AND b.kernel_id = d.kernel_id AND b.problem_id = d.problem_id AND b.stage IN "
    "('search', 'finals') AND b.config_text = t.config_text AND b.status = 'wrong_result'), t.stage = 'finals', "
    "d.confidence, d.baseline_score, d.baseline_median_us, d.baseline_low_us, d.baseline_high_us, d.baseline_count, "
    "t.median_us, t.low_us, t.high_us, t.sample_count, CASE d.objective WHEN 'energy' THEN t.energy_mj WHEN 'edp' THEN "
    "t.energy_mj * t.median_us WHEN 'sustained' THEN t.sustained_us END, t.config_text, s.uuid, t.started_unix_ms "
    "FROM decisions d JOIN trials t ON t.id = d.trial_id JOIN sessions s ON s.id = t.session_id WHERE d.device_id = ? "
    "AND d.toolkit_id = ? AND d.kernel_id = ? AND d.problem_id = ? AND d.objective = ? AND d.superseded = 0";

Candidate read_candidate(Query& row) {
  Candidate candidate;
  candidate.trial = row.integer();
  candidate.decided_unix_ms = row.integer();
  candidate.proven_wrong = row.flag();
  candidate.in_finals = row.flag();
  candidate.confidence = row.real();
  candidate.baseline_score = row.optional_real();
  candidate.baseline = read_summary(row);
  candidate.time = read_summary(row).value_or(TimeSummary{});
  candidate.score = row.optional_real();
  candidate.config = row.text();
  candidate.session = row.text();
  candidate.started_unix_ms = row.integer();
  return candidate;
}

// Whether samples enough stand behind the times of both.
bool is_supported(const Candidate& candidate, bool by_time) {
  return by_time ? candidate.baseline && candidate.baseline->count >= kFewestSamples &&
                       candidate.time.count >= kFewestSamples
                 : candidate.baseline_score && candidate.score;
}

// By how much it beats what it was compared with, side by side: of two supported times what is certain of it, the
// intervals counted against it. 0 where it was compared with nothing. Sessions, nights and cards of one model differ in
// their clocks, so times of one are not compared with those of another.
double speedup(const Candidate& candidate, bool by_time) {
  double ratio = 0;
  if (!by_time) {
    ratio = candidate.baseline_score && candidate.score ? *candidate.baseline_score / *candidate.score : 0;
  } else if (is_supported(candidate, by_time)) {
    ratio = candidate.baseline->low_us / candidate.time.high_us;
  } else if (candidate.baseline) {
    ratio = candidate.baseline->median_us / candidate.time.median_us;
  }
  return std::isfinite(ratio) ? ratio : 0;
}

double worst_value(const Candidate& candidate, bool by_time) {
  const double value = by_time ? candidate.time.high_us : candidate.score.value_or(0);
  return std::isfinite(value) ? value : std::numeric_limits<double>::max();
}

// A total order that looks at nothing but what is stored: the winner is the same in whatever order databases are
// merged.
bool is_better(const Candidate& a, const Candidate& b, bool by_time) {
  const auto rank = [&](const Candidate& candidate) {
    return std::tuple(!candidate.proven_wrong, candidate.in_finals, is_supported(candidate, by_time),
                      speedup(candidate, by_time), candidate.confidence, -worst_value(candidate, by_time),
                      candidate.decided_unix_ms);
  };
  const auto identity = [](const Candidate& candidate) {
    return std::tie(candidate.config, candidate.session, candidate.started_unix_ms);
  };
  const auto rank_a = rank(a);
  const auto rank_b = rank(b);
  return rank_a != rank_b ? rank_a > rank_b : identity(a) < identity(b);
}

Query& bind_key(Query& query, const WinnerKey& key) {
  const auto& [device, toolkit, kernel, problem] = key.first;
  return query.bind(device, toolkit, kernel, problem, key.second);
}

// A decision as one of its key.
using DecisionId = std::pair<std::int64_t, std::int64_t>;  // trial and time

std::optional<DecisionId> best_of(Connection& to, const WinnerKey& key) {
  const bool by_time = key.second == name_of(Objective::time);
  std::optional<Candidate> best;
  Query row = to.query(std::string(kCandidates));
  bind_key(row, key);
  while (row.step()) {
    Candidate candidate = read_candidate(row);
    if (!best || is_better(candidate, *best, by_time)) {
      best = std::move(candidate);
    }
  }
  return best ? std::optional(DecisionId(best->trial, best->decided_unix_ms)) : std::nullopt;
}

std::optional<DecisionId> winner_here(Connection& to, const WinnerKey& key) {
  Query row = to.query(
      "SELECT trial_id, decided_unix_ms FROM winners WHERE device_id = ? AND toolkit_id = ? AND kernel_id = ? AND "
      "problem_id = ? AND objective = ?");
  if (!bind_key(row, key).step()) {
    return std::nullopt;
  }
  const std::int64_t trial = row.integer();
  return DecisionId(trial, row.integer());
}

void set_winner(Connection& to, const WinnerKey& key, const DecisionId& choice) {
  Query replace = to.query(
      "INSERT OR REPLACE INTO winners (device_id, toolkit_id, kernel_id, problem_id, objective, trial_id, "
      "baseline_median_us, baseline_low_us, baseline_high_us, baseline_count, baseline_score, confidence, "
      "decided_unix_ms) SELECT device_id, toolkit_id, kernel_id, problem_id, objective, trial_id, baseline_median_us, "
      "baseline_low_us, baseline_high_us, baseline_count, baseline_score, confidence, decided_unix_ms FROM decisions "
      "WHERE device_id = ? AND toolkit_id = ? AND kernel_id = ? AND problem_id = ? AND objective = ? AND trial_id = ? "
      "AND decided_unix_ms = ?");
  bind_key(replace, key);
  replace.bind_at(6, choice.first);
  replace.bind_at(7, choice.second);
  replace.run();
}

// What the file brought to one key: its decisions that count there.
void choose(Connection& to, const WinnerKey& key, const std::set<DecisionId>& brought, MergeCounts& counts) {
  const std::optional<DecisionId> before = winner_here(to, key);
  const std::optional<DecisionId> best = best_of(to, key);
  if (best && best != before) {
    set_winner(to, key, *best);
    ++(before ? counts.winners_replaced : counts.winners_added);
  } else if (best) {
    set_winner(to, key, *best);  // with what is known of it now
    ++(brought.contains(*best) ? counts.winners_known : counts.winners_kept);
  }
}

constexpr std::string_view kOfDecision =
    "device_id = ?1 AND toolkit_id = ?2 AND kernel_id = ?3 AND problem_id = ?4 AND objective = ?5 AND trial_id = ?6 "
    "AND "
    "decided_unix_ms = ?7";

// A decision that is known stays, unless it does not count any more there. Copies of a database that went on apart can
// have decided for one trial in the same millisecond: the greater values stay, whichever side they are on.
bool update_decision(Connection& to, const MergedDecision& decision) {
  const auto& [device, toolkit, kernel, problem] = decision.key;
  const auto values = [](std::string_view confidence, std::string_view median, std::string_view low,
                         std::string_view high, std::string_view count, std::string_view score) {
    return fmt::format("({}, coalesce({}, -1), coalesce({}, -1), coalesce({}, -1), coalesce({}, -1), coalesce({}, -1))",
                       confidence, median, low, high, count, score);
  };
  const std::string greater = values("?8", "?9", "?10", "?11", "?12", "?13") + " > " +
                              values("confidence", "baseline_median_us", "baseline_low_us", "baseline_high_us",
                                     "baseline_count", "baseline_score");
  const int replaced =
      to.query(fmt::format("UPDATE decisions SET confidence = ?8, baseline_median_us = ?9, baseline_low_us = ?10, "
                           "baseline_high_us = ?11, baseline_count = ?12, baseline_score = ?13 WHERE {} AND {}",
                           kOfDecision, greater))
          .bind(device, toolkit, kernel, problem, decision.objective, decision.trial, decision.decided_unix_ms,
                decision.confidence, decision.baseline_us[0], decision.baseline_us[1], decision.baseline_us[2],
                decision.baseline_count, decision.baseline_score)
          .run();
  const int superseded =
      !decision.superseded
          ? 0
          : to.query(fmt::format("UPDATE decisions SET superseded = 1 WHERE {} AND superseded = 0", kOfDecision))
                .bind(device, toolkit, kernel, problem, decision.objective, decision.trial, decision.decided_unix_ms)
                .run();
  return replaced + superseded > 0;
}

// The trial that is known to be decided for then, if it is equal to the decision's. Of several equal trials of a
// session any stands for any. CROSS JOIN keeps SQLite from looking through all trials of the session.
std::int64_t same_trial(Connection& to, const MergedDecision& decision) {
  const auto of = [](std::string_view table) {
    std::string columns = fmt::format("{}.session_id", table);
    std::string_view rest = trial_columns();
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find(", "));
      rest.remove_prefix(std::min(rest.size(), name.size() + 2));
      columns += fmt::format(", {}.{}", table, name);
    }
    return columns;
  };
  static const std::string sql = fmt::format(
      "SELECT d.trial_id FROM decisions d CROSS JOIN trials a ON a.id = d.trial_id CROSS JOIN trials b ON b.id = ?6 "
      "WHERE d.device_id = ?1 AND d.toolkit_id = ?2 AND d.kernel_id = ?3 AND d.problem_id = ?4 AND d.objective = ?5 "
      "AND "
      "d.decided_unix_ms = ?7 AND ({}) IS ({})",
      of("a"), of("b"));
  const auto& [device, toolkit, kernel, problem] = decision.key;
  Query row = to.query(sql);
  row.bind(device, toolkit, kernel, problem, decision.objective, decision.trial, decision.decided_unix_ms);
  return row.step() ? row.integer() : decision.trial;
}

// Whether anything was new.
bool add_decision(Connection& to, const MergedDecision& decision) {
  const auto& [device, toolkit, kernel, problem] = decision.key;
  const int added =
      to.query(
            "INSERT INTO decisions (device_id, toolkit_id, kernel_id, problem_id, objective, trial_id, "
            "decided_unix_ms, superseded, baseline_median_us, baseline_low_us, baseline_high_us, baseline_count, "
            "baseline_score, confidence) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING")
          .bind(device, toolkit, kernel, problem, decision.objective, decision.trial, decision.decided_unix_ms,
                decision.superseded, decision.baseline_us[0], decision.baseline_us[1], decision.baseline_us[2],
                decision.baseline_count, decision.baseline_score, decision.confidence)
          .run();
  return added > 0 || update_decision(to, decision);
}

}  // namespace

std::vector<MergedDecision> read_decisions(Merge& merge) {
  Query row = merge_read(
      merge,
      "SELECT d.device_id, d.toolkit_id, d.kernel_id, d.problem_id, d.objective, d.trial_id, d.decided_unix_ms, "
      "d.superseded, d.baseline_median_us, d.baseline_low_us, d.baseline_high_us, d.baseline_count, d.baseline_score, "
      "d.confidence, t.median_us IS NOT NULL AND t.device_id = d.device_id AND t.toolkit_id = d.toolkit_id AND "
      "t.kernel_id = "
      "d.kernel_id AND t.problem_id = d.problem_id FROM decisions d JOIN trials t ON t.id = d.trial_id");
  std::vector<MergedDecision> decisions;
  while (merge_next(merge, row)) {
    MergedDecision& decision = decisions.emplace_back();
    decision.key = {merged_id(merge, merge.devices, row.integer(), "devices"),
                    merged_id(merge, merge.toolkits, row.integer(), "toolkits"),
                    merged_id(merge, merge.kernels, row.integer(), "kernels"),
                    merged_id(merge, merge.problems, row.integer(), "problems")};
    decision.objective = row.text();
    if (!objective_from(decision.objective)) {
      merge_damaged(merge.from, "a winner has an objective that this program does not know");
    }
    const std::int64_t other_trial = row.integer();
    const TrialIds::Row* trial = merge.trials.find(other_trial);
    if (trial == nullptr) {
      merge_dangling(merge.from, other_trial, "trials");
    }
    decision.trial = trial->here;
    decision.decided_unix_ms = row.integer();
    decision.superseded = row.flag();
    for (std::optional<double>& value : decision.baseline_us) {
      value = row.optional_real();
    }
    decision.baseline_count = row.optional_integer();
    decision.baseline_score = row.optional_real();
    decision.confidence = row.real();
    if (!row.flag()) {
      merge_damaged(merge.from, "a winner is not an `ok` trial of its key");
    }
  }
  return decisions;
}

void merge_decisions(Connection& to, const std::vector<MergedDecision>& decisions, MergeCounts& counts) {
  std::map<WinnerKey, std::set<DecisionId>> brought;
  for (MergedDecision decision : decisions) {
    decision.trial = same_trial(to, decision);
    counts.decisions += add_decision(to, decision) ? 1 : 0;
    std::set<DecisionId>& of_key = brought[{decision.key, decision.objective}];
    if (!decision.superseded) {
      of_key.insert({decision.trial, decision.decided_unix_ms});
    }
  }
  for (const auto& [key, choices] : brought) {
    choose(to, key, choices, counts);
  }
}

void settle_winners(Connection& to, MergeCounts& counts) {
  std::vector<WinnerKey> keys;
  {
    Query row = to.query(
        "SELECT device_id, toolkit_id, kernel_id, problem_id, objective FROM decisions WHERE superseded = 0 GROUP BY "
        "device_id, toolkit_id, kernel_id, problem_id, objective HAVING count(*) > 1");
    while (row.step()) {
      WinnerKey& key = keys.emplace_back();
      for (std::int64_t& id : key.first) {
        id = row.integer();
      }
      key.second = row.text();
    }
  }
  for (const WinnerKey& key : keys) {
    const std::optional<DecisionId> best = best_of(to, key);
    if (best && best != winner_here(to, key)) {
      set_winner(to, key, *best);
      ++counts.winners_replaced;
    }
  }
}

}  // namespace pascaline
