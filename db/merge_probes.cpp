#include "db/merge_rows.hpp"

namespace pascaline {
namespace {

void copy_rows(Merge& merge, const std::string& table, const std::string& columns, int count, std::int64_t other_id,
               std::int64_t id) {
  Query row = merge_read(merge, "SELECT " + columns + " FROM " + table + " WHERE probe_id = ?");
  row.bind(other_id);
  std::string sql = "INSERT INTO " + table + " (probe_id, " + columns + ") VALUES (?";
  for (int i = 0; i < count; ++i) {
    sql += ", ?";
  }
  Query insert = merge.to.query(sql + ")");
  while (merge_next(merge, row)) {
    insert.bind_at(1, id);
    row.copy_to(insert, 2, count);
    insert.run();
  }
}

}  // namespace

// A probe is stored whole and never changed, so one that is known is known with all its values.
void merge_probes(Merge& merge) {
  Query row = merge_read(merge,
                         "SELECT id, device_id, toolkit_id, uuid, device_uuid, program_version, started_unix_ms, "
                         "finished_unix_ms, temperature_c, throttled, left_out FROM probes ORDER BY id");
  constexpr int kUuid = 3;
  constexpr int kPlain = 8;
  while (merge_next(merge, row)) {
    const std::int64_t other_id = row.integer();
    const std::int64_t device = merged_id(merge, merge.devices, row.integer(), "devices");
    const std::int64_t toolkit = merged_id(merge, merge.toolkits, row.integer(), "toolkits");
    Query find = merge.to.query("SELECT id FROM probes WHERE uuid = ?");
    row.copy_to(find, 1, 1);
    if (find.step()) {
      ++merge.counts.probes_known;
      continue;
    }
    row.go_to(kUuid);
    Query insert = merge.to.query(
        "INSERT INTO probes (device_id, toolkit_id, uuid, device_uuid, program_version, started_unix_ms, "
        "finished_unix_ms, temperature_c, throttled, left_out) VALUES (?,?,?,?,?,?,?,?,?,?)");
    insert.bind(device, toolkit);
    row.copy_to(insert, 3, kPlain);
    insert.run();
    const std::int64_t id = last_inserted(merge);
    copy_rows(merge, "probe_values", "quantity, median, low, high, spread, samples, steady", 7, other_id, id);
    copy_rows(merge, "probe_chains", "ordinal, variant, conflicts, slots, low, high, samples", 7, other_id, id);
    ++merge.counts.probes;
  }
}

}  // namespace pascaline
