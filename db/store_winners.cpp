#include <fmt/format.h>
#include <sqlite3.h>

#include "db/rows.hpp"
#include "db/store_impl.hpp"

namespace pascaline {
namespace {

std::string select_winners(bool one_kernel, bool one_device) {
  std::string sql = fmt::format(
      "SELECT w.trial_id, w.baseline_median_us, w.baseline_low_us, w.baseline_high_us, w.baseline_count, "
      "w.confidence, w.decided_unix_ms, {}, {}, source_hash, space_hash, {} "
      "FROM winners w JOIN trial_details t ON t.id = w.trial_id WHERE 1",
      kDetailDevice, kDetailToolkit, kDetailTrial);
  sql += one_kernel ? " AND kernel = ?" : "";
  sql += one_device ? " AND device_kind = ? AND device = ? AND compute_capability = ? AND sm_count = ?" : "";
  return sql + " ORDER BY w.decided_unix_ms DESC, w.trial_id DESC";
}

Winner read_winner(Query& row) {
  Winner winner;
  winner.trial_id = row.integer();
  winner.baseline = read_summary(row);
  winner.confidence = row.real();
  winner.decided_unix_ms = row.integer();
  winner.device = read_device(row);
  winner.toolkit = read_toolkit(row);
  winner.kernel.source_hash = row.text();
  winner.space_hash = row.text();
  winner.trial = read_trial(row);
  winner.kernel.name = winner.trial.problem.kernel;
  return winner;
}

}  // namespace

void Store::set_winner(const ContextIds& context, std::int64_t trial_id, const std::optional<TimeSummary>& baseline,
                       double confidence) {
  impl_->connection->guard("store a winner", [&] {
    const int changed =
        impl_->connection
            ->query(
                "INSERT OR REPLACE INTO winners (device_id, toolkit_id, kernel_id, problem_id, trial_id, "
                "baseline_median_us, baseline_low_us, baseline_high_us, baseline_count, confidence, decided_unix_ms) "
                "SELECT device_id, toolkit_id, kernel_id, problem_id, id, ?, ?, ?, ?, ?, ? FROM trials WHERE id = ? "
                "AND device_id = ? AND toolkit_id = ? AND kernel_id = ? AND problem_id = ? AND status = 'ok'")
            .bind(field(baseline, &TimeSummary::median_us), field(baseline, &TimeSummary::low_us),
                  field(baseline, &TimeSummary::high_us), field(baseline, &TimeSummary::count), confidence,
                  unix_ms_now(), trial_id, context.device, context.toolkit, context.kernel, context.problem)
            .run();
    if (changed == 0) {
      impl_->connection->fail("store a winner",
                              fmt::format("trial {} is no `ok` trial of that context; this is a fault of the program, "
                                          "please report it",
                                          trial_id),
                              SQLITE_MISUSE);
    }
  });
}

bool Store::decided_in_run(const ContextIds& context, const std::string& run_uuid) const {
  return impl_->connection->guard("read the winner of a run", [&] {
    Query row = impl_->connection->query(
        "SELECT 1 FROM winners w JOIN trials t ON t.id = w.trial_id JOIN sessions s ON s.id = t.session_id "
        "WHERE w.device_id = ? AND w.toolkit_id = ? AND w.kernel_id = ? AND w.problem_id = ? AND s.run_uuid = ?");
    return row.bind(context.device, context.toolkit, context.kernel, context.problem, run_uuid).step();
  });
}

std::vector<Winner> Store::winners(const std::string& kernel, const DeviceRow* device) const {
  return impl_->connection->guard("read the winners", [&] {
    Query row = impl_->connection->query(select_winners(!kernel.empty(), device != nullptr));
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
    std::vector<Winner> winners;
    while (row.step()) {
      winners.push_back(read_winner(row));
    }
    return winners;
  });
}

}  // namespace pascaline
