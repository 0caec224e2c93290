#include <fmt/format.h>
#include <sqlite3.h>

#include <limits>
#include <utility>

#include "db/rows.hpp"
#include "db/store_impl.hpp"
#include "db/trial_columns.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kTrialsOfDecision = 300;  // of one problem, with those that other devices stored in between

// What the latest finals that measured it of the same configuration gave, where the winner's own trial has none.
std::string of_other_finals(std::string_view column) {
  return fmt::format(
      "iif(w.objective = 'time' AND t.{0} IS NULL, (SELECT o.{0} FROM trials o WHERE o.device_id = w.device_id AND "
      "o.toolkit_id = w.toolkit_id AND o.kernel_id = w.kernel_id AND o.problem_id = w.problem_id AND "
      "o.stage = 'finals' AND o.config_text = t.config_text AND o.median_us IS NOT NULL AND o.{0} IS NOT NULL "
      "ORDER BY o.id DESC LIMIT 1), NULL)",
      column);
}

std::string select_winners(bool one_kernel, bool one_device, bool one_objective) {
  std::string sql = fmt::format(
      "SELECT w.trial_id, w.objective, w.baseline_median_us, w.baseline_low_us, w.baseline_high_us, w.baseline_count, "
      "w.baseline_score, w.confidence, w.decided_unix_ms, (SELECT count(*) FROM decisions c WHERE c.device_id = "
      "w.device_id AND c.toolkit_id = w.toolkit_id AND c.kernel_id = w.kernel_id AND c.problem_id = w.problem_id AND "
      "c.objective = w.objective AND c.superseded = 0), {}, {}, {}, {}, source_hash, space_hash, {} "
      "FROM winners w JOIN trial_details t ON t.id = w.trial_id WHERE 1",
      of_other_finals("energy_mj"), of_other_finals("sustained_us"), kDetailDevice, kDetailToolkit,
      detail_trial_columns());
  sql += one_kernel ? " AND kernel = ?" : "";
  sql += one_device ? " AND device_kind = ? AND device = ? AND compute_capability = ? AND sm_count = ?" : "";
  sql += one_objective ? " AND w.objective = ?" : "";
  return sql + " ORDER BY w.decided_unix_ms DESC, w.trial_id DESC";
}

Winner read_winner(Query& row) {
  Winner winner;
  winner.trial_id = row.integer();
  const std::string objective = row.text();
  winner.objective = known(objective_from(objective), objective);
  winner.baseline = read_summary(row);
  winner.baseline_score = row.optional_real();
  winner.confidence = row.real();
  winner.decided_unix_ms = row.integer();
  winner.decisions = row.integer();
  winner.known_energy_mj = row.optional_real();
  winner.known_sustained_us = row.optional_real();
  winner.device = read_device(row);
  winner.toolkit = read_toolkit(row);
  winner.kernel.source_hash = row.text();
  winner.space_hash = row.text();
  winner.trial = read_trial(row);
  winner.kernel.name = winner.trial.problem.kernel;
  return winner;
}

constexpr std::string_view kFigures =
    "baseline_median_us, baseline_low_us, baseline_high_us, baseline_count, baseline_score, confidence";

// Of a row `t` whose objective is ?1: the time given, or just after the last decision for its kernel's source and
// problem on its device, whichever is later.
std::string later_than_all(std::string_view now) {
  return fmt::format(
      "max({}, 1 + coalesce((SELECT max(decided_unix_ms) FROM (SELECT decided_unix_ms FROM decisions d WHERE "
      "d.device_id = t.device_id AND d.kernel_id = t.kernel_id AND d.problem_id = t.problem_id AND d.objective = ?1 "
      "UNION ALL SELECT decided_unix_ms FROM winners w WHERE w.device_id = t.device_id AND w.kernel_id = t.kernel_id "
      "AND w.problem_id = t.problem_id AND w.objective = ?1)), 0))",
      now);
}

void supersede_decisions(Connection& connection, const ContextIds& context, Objective objective) {
  connection
      .query(
          "UPDATE decisions SET superseded = 1 WHERE device_id = ? AND toolkit_id = ? AND kernel_id = ? AND "
          "problem_id = ? AND objective = ? AND superseded = 0")
      .bind(context.device, context.toolkit, context.kernel, context.problem, name_of(objective))
      .run();
}

// The one that counts is the winner.
void take_decision(Connection& connection, const ContextIds& context, Objective objective) {
  connection
      .query(fmt::format("INSERT OR REPLACE INTO winners (device_id, toolkit_id, kernel_id, problem_id, objective, "
                         "trial_id, {0}, decided_unix_ms) SELECT device_id, toolkit_id, kernel_id, problem_id, "
                         "objective, trial_id, {0}, decided_unix_ms FROM decisions WHERE device_id = ? AND toolkit_id "
                         "= ? AND kernel_id = ? AND problem_id = ? AND objective = ? AND superseded = 0",
                         kFigures))
      .bind(context.device, context.toolkit, context.kernel, context.problem, name_of(objective))
      .run();
}

// What a winner was compared with.
struct ComparedWith {
  bool is_default = false;
  Config config;
  std::string why;  // the default is not
};

// A decision keeps the baseline's time and not its trial, which is the one of its key with that very time. Those of
// one decision lie side by side, so the whole key is looked through only where it is not among them. A trial that
// shares another's result has its times, too, but was compared with nothing.
std::optional<ComparedWith> compared_with(Connection& connection, std::int64_t winner_trial_id) {
  for (const std::int64_t around : {kTrialsOfDecision, std::numeric_limits<std::int64_t>::max() / 2}) {
    Query row = connection.query(
        "SELECT b.is_default, b.config, (SELECT d.status || iif(d.reason = '', '', ': ' || d.reason) FROM trials d "
        "WHERE d.device_id = w.device_id AND d.toolkit_id = w.toolkit_id AND d.kernel_id = w.kernel_id "
        "AND d.problem_id = w.problem_id AND d.is_default = 1 AND d.median_us IS NULL ORDER BY d.id DESC LIMIT 1) "
        "FROM winners w JOIN trials b ON b.id BETWEEN w.trial_id - ?1 AND w.trial_id + ?1 "
        "AND b.device_id = w.device_id AND b.toolkit_id = w.toolkit_id AND b.kernel_id = w.kernel_id "
        "AND b.problem_id = w.problem_id AND b.median_us = w.baseline_median_us AND b.low_us = w.baseline_low_us "
        "AND b.high_us = w.baseline_high_us AND b.sample_count = w.baseline_count "
        "WHERE w.trial_id = ?2 ORDER BY b.is_default DESC, b.shared_trial_id IS NOT NULL, b.id DESC LIMIT 1");
    row.bind(around, winner_trial_id);
    if (row.step()) {
      ComparedWith compared;
      compared.is_default = row.flag();
      compared.config = read_config(row, "trials");
      compared.why = compared.is_default ? "" : row.text();
      return compared;
    }
  }
  return std::nullopt;
}

}  // namespace

void Store::set_winner(const ContextIds& context, std::int64_t trial_id, const std::optional<TimeSummary>& baseline,
                       double confidence, Objective objective, const std::optional<double>& baseline_score) {
  Connection& connection = *impl_->connection;
  connection.guard("store a winner", [&] {
    Savepoint whole(connection.database());  // the caller may have a transaction open
    supersede_decisions(connection, context, objective);
    const int changed =
        connection
            .query(fmt::format(
                "INSERT INTO decisions (device_id, toolkit_id, kernel_id, problem_id, objective, trial_id, {}, "
                "decided_unix_ms, superseded) "
                "SELECT device_id, toolkit_id, kernel_id, problem_id, ?1, id, ?2, ?3, ?4, ?5, ?6, ?7, {}, 0 "
                "FROM trials t WHERE id = ?9 "
                "AND device_id = ?10 AND toolkit_id = ?11 AND kernel_id = ?12 AND problem_id = ?13 AND median_us IS "
                "NOT NULL",
                kFigures, later_than_all("?8")))
            .bind(name_of(objective), field(baseline, &TimeSummary::median_us), field(baseline, &TimeSummary::low_us),
                  field(baseline, &TimeSummary::high_us), field(baseline, &TimeSummary::count), baseline_score,
                  confidence, unix_ms_now(), trial_id, context.device, context.toolkit, context.kernel, context.problem)
            .run();
    if (changed == 0) {
      connection.fail("store a winner",
                      fmt::format("trial {} is not a usable trial of that context; this is a fault of the program, "
                                  "please report it",
                                  trial_id),
                      SQLITE_MISUSE);
    }
    take_decision(connection, context, objective);
    whole.release();
  });
}

void Store::confirm_winner(const ContextIds& context, Objective objective) {
  Connection& connection = *impl_->connection;
  connection.guard("confirm a winner", [&] {
    Savepoint whole(connection.database());  // the caller may have a transaction open
    supersede_decisions(connection, context, objective);
    const int changed =
        connection
            .query(fmt::format(
                "INSERT INTO decisions (device_id, toolkit_id, kernel_id, problem_id, objective, trial_id, {0}, "
                "decided_unix_ms, superseded) SELECT device_id, toolkit_id, kernel_id, problem_id, objective, "
                "trial_id, "
                "{0}, {1}, 0 FROM winners t WHERE objective = ?1 AND device_id = ?3 AND toolkit_id = ?4 AND "
                "kernel_id = ?5 AND problem_id = ?6",
                kFigures, later_than_all("?2")))
            .bind(name_of(objective), unix_ms_now(), context.device, context.toolkit, context.kernel, context.problem)
            .run();
    if (changed == 0) {
      connection.fail("confirm a winner", "its context has none; this is a fault of the program, please report it",
                      SQLITE_MISUSE);
    }
    take_decision(connection, context, objective);
    whole.release();
  });
}

std::optional<Store::Decision> Store::decision(const ContextIds& context, Objective objective) const {
  return impl_->connection->guard("read how a winner was decided", [&]() -> std::optional<Decision> {
    Query row = impl_->connection->query(
        "SELECT t.stage, t.median_us, t.low_us, t.high_us, t.sample_count, t.canary_us, w.baseline_median_us, "
        "w.baseline_low_us, w.baseline_high_us, w.baseline_count, w.confidence, w.decided_unix_ms, t.config, "
        "w.trial_id "
        "FROM winners w JOIN trials t ON t.id = w.trial_id "
        "WHERE w.device_id = ? AND w.toolkit_id = ? AND w.kernel_id = ? AND w.problem_id = ? AND w.objective = ?");
    row.bind(context.device, context.toolkit, context.kernel, context.problem, name_of(objective));
    if (!row.step()) {
      return std::nullopt;
    }
    const std::string stage = row.text();
    Decision decision;
    decision.stage = known(trial_stage_from(stage), stage);
    decision.time = read_summary(row).value_or(TimeSummary{});
    decision.canary_us = row.optional_real();
    decision.baseline = read_summary(row);
    decision.confidence = row.real();
    decision.id.decided_unix_ms = row.integer();
    decision.config = read_config(row, "trials");
    decision.id.trial = row.integer();
    if (auto compared = compared_with(*impl_->connection, decision.id.trial)) {
      decision.baseline_config = std::move(compared->config);
    }
    return decision;
  });
}

std::optional<Store::StandIn> Store::stand_in_of(std::int64_t winner_trial_id) const {
  return impl_->connection->guard("read what a winner was compared with", [&]() -> std::optional<StandIn> {
    auto compared = compared_with(*impl_->connection, winner_trial_id);
    if (!compared || compared->is_default) {
      return std::nullopt;
    }
    return StandIn{std::move(compared->config), std::move(compared->why)};
  });
}

// Finals that confirmed an earlier decision left trials of the run, but the winner is another session's.
bool Store::decided_in_run(const ContextIds& context, const std::string& run_uuid, Objective objective) const {
  return impl_->connection->guard("read the winner of a run", [&] {
    Query row = impl_->connection->query(
        "SELECT 1 FROM winners w JOIN trials t ON t.device_id = w.device_id AND t.toolkit_id = w.toolkit_id AND "
        "t.kernel_id = w.kernel_id AND t.problem_id = w.problem_id JOIN sessions s ON s.id = t.session_id "
        "WHERE w.device_id = ? AND w.toolkit_id = ? AND w.kernel_id = ? AND w.problem_id = ? AND s.run_uuid = ? "
        "AND w.objective = ? AND t.stage = 'finals' AND (t.id = w.trial_id OR t.started_unix_ms <= "
        "w.decided_unix_ms) LIMIT 1");
    return row.bind(context.device, context.toolkit, context.kernel, context.problem, run_uuid, name_of(objective))
        .step();
  });
}

std::vector<Winner> Store::winners(const std::string& kernel, const DeviceRow* device,
                                   std::optional<Objective> objective) const {
  return impl_->connection->guard("read the winners", [&] {
    Query row = impl_->connection->query(select_winners(!kernel.empty(), device != nullptr, objective.has_value()));
    int index = 0;
    if (!kernel.empty()) {
      row.bind_at(++index, kernel);
    }
    if (device != nullptr) {
      row.bind_at(++index, device->kind);
      row.bind_at(++index, device->name);
      row.bind_at(++index, device->compute_capability);
      row.bind_at(++index, device->sm_count);
    }
    if (objective) {
      row.bind_at(++index, name_of(*objective));
    }
    std::vector<Winner> winners;
    while (row.step()) {
      winners.push_back(read_winner(row));
    }
    return winners;
  });
}

}  // namespace pascaline
