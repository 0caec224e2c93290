#include <fmt/format.h>

#include "db/merge_rows.hpp"
#include "db/process_identity.hpp"
#include "db/rows.hpp"

namespace pascaline {
namespace {

// What the other database took over itself keeps saying where from; the rest is its own.
std::int64_t origin(Merge& merge, std::optional<std::int64_t> other_import) {
  if (!other_import) {
    return merge.import_id;
  }
  const auto [known, unknown] = merge.imports.try_emplace(*other_import);
  if (!unknown) {
    return known->second;
  }
  Query row = merge_read(
      merge, "SELECT kind, content_hash, source, imported_unix_ms, program_version FROM imports WHERE id = ?");
  row.bind(*other_import);
  if (!merge_next(merge, row)) {
    merge_damaged(merge.from, "a session refers to a missing import");
  }
  Query find = merge.to.query(
      "SELECT id FROM imports WHERE kind = ?1 AND content_hash = ?2 AND (kind = 'results' OR (source = ?3 AND "
      "imported_unix_ms = ?4))");
  row.copy_to(find, 1, 4);
  if (find.step()) {
    known->second = find.integer();
    return known->second;
  }
  row.go_to(0);
  Query insert = merge.to.query(
      "INSERT INTO imports (kind, content_hash, source, imported_unix_ms, program_version) VALUES (?, ?, ?, ?, ?)");
  row.copy_to(insert, 1, 5);
  insert.run();
  known->second = last_inserted(merge);
  return known->second;
}

// Columns of a session as it is merged, the greatest first of two states of one session: that of the database where
// more was done in it. One that runs is taken as interrupted after its last trial. The uuid, the device and the
// toolkit are the same on both sides, and where it came from is said by each database for itself.
constexpr std::string_view kMergedColumns =
    "spent_ms, coalesce(finished_unix_ms, max(started_unix_ms, coalesce((SELECT max(t.started_unix_ms) FROM trials t "
    "WHERE t.session_id = sessions.id), 0))), CASE state WHEN 'running' THEN 'interrupted' ELSE state END, "
    "coalesce(progress, ''), process_id, process_start, boot_id, device_uuid, started_unix_ms, searcher, seed, "
    "options, "
    "command_line, program_version, run_uuid";
constexpr std::string_view kStoredColumns =
    "spent_ms, finished_unix_ms, state, progress, process_id, process_start, boot_id, device_uuid, started_unix_ms, "
    "searcher, seed, options, command_line, program_version, run_uuid";
constexpr std::string_view kStoredValues =
    "?1, ?2, ?3, nullif(?4, ''), ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15";
constexpr std::string_view kComparedValues = "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15";
constexpr int kColumns = 15;

// Of the columns state, process_id, process_start, boot_id; of another boot nobody knows.
bool may_run(Query& row, const std::string& boot_id) {
  const bool running = row.text() == "running";
  const ProcessIdentity process = read_process(row);
  return running && (process.boot_id != boot_id || is_alive(process));
}

std::int64_t insert_session(Merge& merge, Query& row, int columns_at, const std::string& uuid, std::int64_t device,
                            std::int64_t toolkit, std::int64_t import_id) {
  Query insert = merge.to.query(
      fmt::format("INSERT INTO sessions ({}, uuid, device_id, toolkit_id, import_id) VALUES ({}, ?16, ?17, ?18, ?19)",
                  kStoredColumns, kStoredValues));
  row.go_to(columns_at);
  row.copy_to(insert, 1, kColumns);
  insert.bind_at(kColumns + 1, uuid);
  insert.bind_at(kColumns + 2, device);
  insert.bind_at(kColumns + 3, toolkit);
  insert.bind_at(kColumns + 4, import_id);
  insert.run();
  ++merge.counts.sessions;
  return last_inserted(merge);
}

// A session that runs here goes on as it is.
void update_session(Merge& merge, Query& row, int columns_at, std::int64_t id, const std::string& boot_id) {
  Query here = merge.to.query("SELECT state, process_id, process_start, boot_id FROM sessions WHERE id = ?");
  if (!here.bind(id).step() || may_run(here, boot_id)) {
    return;
  }
  Query update = merge.to.query(fmt::format("UPDATE sessions SET ({}) = ({}) WHERE id = ?16 AND ({}) < ({})",
                                            kStoredColumns, kStoredValues, kMergedColumns, kComparedValues));
  row.go_to(columns_at);
  row.copy_to(update, 1, kColumns);
  update.bind_at(kColumns + 1, id);
  if (update.run() > 0) {
    merge.grown_sessions.insert(id);
  }
}

}  // namespace

void merge_sessions(Merge& merge) {
  Query row = merge_read(merge, fmt::format("SELECT id, state, {}, device_id, toolkit_id, import_id, uuid, {} FROM "
                                            "sessions ORDER BY id",
                                            kProcess, kMergedColumns));
  constexpr int kColumnsAt = 9;
  const std::string boot_id = this_process().boot_id;
  while (merge_next(merge, row)) {
    std::int64_t& id = merge.sessions[row.integer()];
    merge.counts.sessions_running += may_run(row, boot_id) ? 1 : 0;
    const std::int64_t device = merged_id(merge, merge.devices, row.integer(), "devices");
    const std::int64_t toolkit = merged_id(merge, merge.toolkits, row.integer(), "toolkits");
    const std::optional<std::int64_t> other_import = row.optional_integer();
    const std::string uuid = row.text();
    Query find = merge.to.query("SELECT id, device_id FROM sessions WHERE uuid = ?");
    if (!find.bind(uuid).step()) {
      id = insert_session(merge, row, kColumnsAt, uuid, device, toolkit, origin(merge, other_import));
      continue;
    }
    id = find.integer();
    if (find.integer() != device) {
      merge_damaged(merge.from, fmt::format("session {} is of another device in {}", uuid, merge.to.file().string()));
    }
    merge.known_sessions.insert(id);
    update_session(merge, row, kColumnsAt, id, boot_id);
  }
}

}  // namespace pascaline
