#include <fmt/format.h>

#include "db/rows.hpp"
#include "db/store_impl.hpp"
#include "db/trial_columns.hpp"

namespace pascaline {

std::vector<PastDecision> Store::decisions(const DeviceRow& device) const {
  return impl_->connection->guard("read what was decided when", [&] {
    Query row = impl_->connection->query(fmt::format(
        "SELECT d.decided_unix_ms, t.median_us, t.low_us, t.high_us, t.sample_count, d.baseline_median_us, "
        "d.baseline_low_us, d.baseline_high_us, d.baseline_count, kernel, source_hash, problem, {} FROM decisions d "
        "JOIN trial_details t ON t.id = d.trial_id WHERE d.objective = 'time' AND device_kind = ? AND device = ? AND "
        "compute_capability = ? AND sm_count = ? ORDER BY d.decided_unix_ms, d.trial_id",
        kDetailToolkit));
    row.bind(device.kind, device.name, device.compute_capability, device.sm_count);
    std::vector<PastDecision> decisions;
    while (row.step()) {
      PastDecision& decision = decisions.emplace_back();
      decision.decided_unix_ms = row.integer();
      decision.time = read_summary(row).value_or(TimeSummary{});
      decision.baseline = read_summary(row);
      decision.kernel.name = row.text();
      decision.kernel.source_hash = row.text();
      decision.problem = row.text();
      decision.toolkit = read_toolkit(row);
    }
    return decisions;
  });
}

}  // namespace pascaline
