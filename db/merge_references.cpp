#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <tuple>
#include <vector>

#include "db/merge_rows.hpp"

namespace pascaline {
namespace {

// Rows that measurements hang on: `key` tells them apart in every database, `beside` is taken over with a new one.
struct MergedTable {
  std::string_view name;
  std::vector<std::string_view> key;
  std::vector<std::string_view> beside{};
  // What to do with one that is known; ids as read, and here.
  std::function<void(Merge&, std::int64_t, std::int64_t)> on_known{};
};

void map_rows(Merge& merge, const MergedTable& table, MergeIds& ids) {
  std::vector<std::string_view> columns = table.key;
  columns.insert(columns.end(), table.beside.begin(), table.beside.end());
  const std::string find_sql =
      fmt::format("SELECT id FROM {} WHERE {} = ?", table.name, fmt::join(table.key, " = ? AND "));
  std::string insert_sql = fmt::format("INSERT INTO {} ({}) VALUES (?", table.name, fmt::join(columns, ", "));
  for (std::size_t i = 1; i < columns.size(); ++i) {
    insert_sql += ", ?";
  }
  insert_sql += ')';
  Query row = merge_read(merge, fmt::format("SELECT id, {} FROM {} ORDER BY id", fmt::join(columns, ", "), table.name));
  while (merge_next(merge, row)) {
    const std::int64_t other_id = row.integer();
    std::int64_t& id = ids[other_id];
    Query find = merge.to.query(find_sql);
    row.copy_to(find, 1, static_cast<int>(table.key.size()));
    if (find.step()) {
      id = find.integer();
      if (table.on_known) {
        table.on_known(merge, other_id, id);
      }
      continue;
    }
    row.go_to(1);
    Query insert = merge.to.query(insert_sql);
    row.copy_to(insert, 1, static_cast<int>(columns.size()));
    insert.run();
    id = last_inserted(merge);
  }
}

// What is kept beside a key is that of the side with the newer measurement, of equally new ones the greater: the same
// values must be left in whatever order databases are merged.

using Limits = std::pair<std::int64_t, std::string>;

Limits limits_of(Connection& connection, std::int64_t id) {
  Query row = connection.query("SELECT memory_bytes, limits FROM devices WHERE id = ?");
  std::ignore = row.bind(id).step();
  const std::int64_t memory = row.integer();
  return {memory, row.text()};
}

std::int64_t newest_session_on(Connection& connection, std::int64_t device) {
  Query row = connection.query("SELECT coalesce(max(started_unix_ms), 0) FROM sessions WHERE device_id = ?");
  std::ignore = row.bind(device).step();
  return row.integer();
}

void merge_limits(Merge& merge, std::int64_t other_id, std::int64_t id) {
  const Limits other = merge_reading(merge.from, [&] { return limits_of(merge.from, other_id); });
  const Limits here = limits_of(merge.to, id);
  if (other == here ||
      std::pair(newest_session_on(merge.from, other_id), other) < std::pair(newest_session_on(merge.to, id), here)) {
    return;
  }
  merge.to.query("UPDATE devices SET memory_bytes = ?, limits = ? WHERE id = ?")
      .bind(other.first, other.second, id)
      .run();
  ++merge.counts.corrected;
}

using Work = std::pair<double, double>;

Work work_of(Connection& connection, std::int64_t id) {
  Query row = connection.query("SELECT flops, bytes FROM problems WHERE id = ?");
  std::ignore = row.bind(id).step();
  const double flops = row.real();
  return {flops, row.real()};
}

std::int64_t newest_trial_of(Connection& connection, std::int64_t problem) {
  Query row = connection.query("SELECT coalesce(max(started_unix_ms), 0) FROM trials WHERE problem_id = ?");
  std::ignore = row.bind(problem).step();
  return row.integer();
}

// The formula of the work may have been corrected.
void merge_work(Merge& merge, std::int64_t other_id, std::int64_t id) {
  const Work other = merge_reading(merge.from, [&] { return work_of(merge.from, other_id); });
  const Work here = work_of(merge.to, id);
  if (other == here ||
      std::pair(newest_trial_of(merge.from, other_id), other) < std::pair(newest_trial_of(merge.to, id), here)) {
    return;
  }
  merge.to.query("UPDATE problems SET flops = ?, bytes = ? WHERE id = ?").bind(other.first, other.second, id).run();
  ++merge.counts.corrected;
}

}  // namespace

// A text of a problem that has other dimensions, types or data here breaks the rule that texts are unique.
void merge_references(Merge& merge) {
  map_rows(merge,
           {"devices", {"kind", "name", "compute_capability", "sm_count"}, {"memory_bytes", "limits"}, merge_limits},
           merge.devices);
  map_rows(merge, {"toolkits", {"compiler", "version", "target", "driver_version"}}, merge.toolkits);
  map_rows(merge, {"kernels", {"name", "source_hash"}}, merge.kernels);
  map_rows(merge, {"spaces", {"kernel", "hash"}, {"json"}}, merge.spaces);
  map_rows(merge, {"problems", {"text", "kernel", "dimensions", "types", "data"}, {"flops", "bytes"}, merge_work},
           merge.problems);
}

}  // namespace pascaline
