#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <memory>
#include <vector>

#include "core/util/hash.hpp"
#include "core/version.hpp"
#include "db/merge_rows.hpp"
#include "db/process_identity.hpp"
#include "db/rows.hpp"
#include "db/store_impl.hpp"

namespace pascaline {
namespace {

constexpr std::string_view kMerging = "merge another database into it";
constexpr std::string_view kReading = "read what is to be merged";

// Rows that measurements hang on: `key` tells them apart in every database, `beside` is taken over with a new one.
struct MergedTable {
  std::string_view name;
  std::vector<std::string_view> key;
  std::vector<std::string_view> beside;
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
    std::int64_t& id = ids[row.integer()];
    Query find = merge.to.query(find_sql);
    row.copy_to(find, 1, static_cast<int>(table.key.size()));
    if (find.step()) {
      id = find.integer();
      continue;
    }
    row.go_to(1);
    Query insert = merge.to.query(insert_sql);
    row.copy_to(insert, 1, static_cast<int>(columns.size()));
    insert.run();
    id = last_inserted(merge);
  }
}

// A text of a problem that has other dimensions or types here breaks the rule that texts are unique.
void map_references(Merge& merge) {
  map_rows(merge, {"devices", {"kind", "name", "compute_capability", "sm_count"}, {"memory_bytes", "limits"}},
           merge.devices);
  map_rows(merge, {"toolkits", {"compiler", "version", "target", "driver_version"}, {}}, merge.toolkits);
  map_rows(merge, {"kernels", {"name", "source_hash"}, {}}, merge.kernels);
  map_rows(merge, {"spaces", {"kernel", "hash"}, {"json"}}, merge.spaces);
  map_rows(merge, {"problems", {"text", "kernel", "dimensions", "types"}, {"flops", "bytes"}}, merge.problems);
}

// Damage is otherwise looked for only when a database is opened for writing. What could not be read once it is here
// would make the whole of one's own database unreadable.
void check_other(Merge& merge) {
  merge.from.guard(kReading, [&] {
    const std::string verdict = merge.from.database().execAndGet("PRAGMA quick_check(1)").getString();
    if (verdict != "ok") {
      merge.from.fail(kReading, explain_sqlite(SQLITE_CORRUPT, verdict), SQLITE_CORRUPT);
    }
    Query dangling = merge.from.query("PRAGMA foreign_key_check");
    if (dangling.step()) {
      merge_damaged(merge, fmt::format("table {} has a row that refers to a missing one", dangling.text()));
    }
    check_documents(merge.from);
  });
}

std::string content_hash(Merge& merge) {
  FieldHash hash;
  Query row = merge_read(merge,
                         "SELECT uuid || ' ' || state || ' ' || spent_ms || ' ' || coalesce(finished_unix_ms, '') || "
                         "' ' || (SELECT count(*) FROM trials WHERE session_id = sessions.id) FROM sessions "
                         "ORDER BY uuid");
  while (merge_next(merge, row)) {
    hash.add(row.text());
  }
  Query probe = merge_read(merge, "SELECT uuid FROM probes ORDER BY uuid");
  while (merge_next(merge, probe)) {
    hash.add(probe.text());
  }
  return hash.hex();
}

void begin_import(Merge& merge) {
  merge.to
      .query(
          "INSERT INTO imports (kind, source, content_hash, imported_unix_ms, program_version) VALUES "
          "('merge', ?, ?, ?, ?)")
      .bind(merge.from.file().filename().string(), content_hash(merge), unix_ms_now(), std::string_view(kVersion))
      .run();
  merge.import_id = last_inserted(merge);
}

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
    merge_damaged(merge, "a session refers to a missing import");
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

// A running session is taken as one that was interrupted after its last trial.
constexpr std::string_view kSelectSessions =
    "SELECT s.id, s.process_id, s.process_start, s.boot_id, s.state = 'running', s.device_id, s.import_id, s.uuid, "
    "s.toolkit_id, CASE s.state WHEN 'running' THEN 'interrupted' ELSE s.state END, coalesce(s.finished_unix_ms, "
    "max(s.started_unix_ms, coalesce((SELECT max(started_unix_ms) FROM trials WHERE session_id = s.id), 0))), "
    "s.spent_ms, s.progress, s.process_id, s.process_start, s.boot_id, s.device_uuid, s.started_unix_ms, s.searcher, "
    "s.seed, s.options, s.command_line, s.program_version, s.run_uuid FROM sessions s ORDER BY s.id";
constexpr int kUuidColumn = 7;
constexpr int kStateColumn = 9;
constexpr int kProgressColumns = 4;  // state and what follows it
constexpr int kPlainColumns = 11;    // those after

bool may_run(Query& row) {
  const ProcessIdentity process = read_process(row);
  const bool running = row.flag();
  return running && (process.boot_id != this_process().boot_id || is_alive(process));
}

std::int64_t insert_session(Merge& merge, Query& row, std::int64_t device, std::int64_t import_id) {
  row.go_to(kUuidColumn);
  const std::string uuid = row.text();
  const std::int64_t toolkit = merged_id(merge, merge.toolkits, row.integer(), "toolkits");
  Query insert = merge.to.query(
      "INSERT INTO sessions (uuid, device_id, toolkit_id, import_id, state, finished_unix_ms, spent_ms, progress, "
      "process_id, process_start, boot_id, device_uuid, started_unix_ms, searcher, seed, options, command_line, "
      "program_version, run_uuid) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  insert.bind(uuid, device, toolkit, import_id);
  row.copy_to(insert, 5, kProgressColumns + kPlainColumns);
  insert.run();
  ++merge.counts.sessions;
  return last_inserted(merge);
}

// Of two states of one session that of the database where more of it was done counts.
void update_session(Merge& merge, Query& row, std::int64_t id) {
  Query update = merge.to.query(
      "UPDATE sessions SET state = ?1, finished_unix_ms = ?2, spent_ms = ?3, progress = ?4 WHERE id = ?5 "
      "AND state <> 'running' AND (spent_ms, finished_unix_ms) < (?3, ?2)");
  row.go_to(kStateColumn);
  row.copy_to(update, 1, kProgressColumns);
  update.bind_at(kProgressColumns + 1, id);
  if (update.run() > 0) {
    merge.grown_sessions.insert(id);
  }
}

void merge_sessions(Merge& merge) {
  Query row = merge_read(merge, std::string(kSelectSessions));
  while (merge_next(merge, row)) {
    std::int64_t& id = merge.sessions[row.integer()];
    merge.counts.sessions_running += may_run(row) ? 1 : 0;
    const std::int64_t device = merged_id(merge, merge.devices, row.integer(), "devices");
    const std::optional<std::int64_t> other_import = row.optional_integer();
    const std::string uuid = row.text();
    Query find = merge.to.query("SELECT id, device_id FROM sessions WHERE uuid = ?");
    if (!find.bind(uuid).step()) {
      id = insert_session(merge, row, device, origin(merge, other_import));
      continue;
    }
    id = find.integer();
    if (find.integer() != device) {
      merge_damaged(merge, fmt::format("session {} is of another device in {}", uuid, merge.to.file().string()));
    }
    merge.known_sessions.insert(id);
    update_session(merge, row, id);
  }
}

void merge_telemetry(Merge& merge) {
  Query row = merge_read(merge,
                         "SELECT session_id, unix_ms, temperature_c, sm_clock_mhz, memory_clock_mhz, power_w, "
                         "throttle_reasons, governor_state, canary_us FROM telemetry ORDER BY id");
  while (merge_next(merge, row)) {
    const std::int64_t session = merged_id(merge, merge.sessions, row.integer(), "sessions");
    const bool known = merge.known_sessions.contains(session);
    Query insert = merge.to.query(
        known ? "INSERT INTO telemetry (session_id, unix_ms, temperature_c, sm_clock_mhz, memory_clock_mhz, power_w, "
                "throttle_reasons, governor_state, canary_us) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 WHERE NOT "
                "EXISTS (SELECT 1 FROM telemetry WHERE session_id = ?1 AND unix_ms = ?2 AND temperature_c IS ?3 AND "
                "sm_clock_mhz IS ?4 AND memory_clock_mhz IS ?5 AND power_w IS ?6 AND throttle_reasons IS ?7 AND "
                "governor_state = ?8 AND canary_us IS ?9)"
              : "INSERT INTO telemetry (session_id, unix_ms, temperature_c, sm_clock_mhz, memory_clock_mhz, power_w, "
                "throttle_reasons, governor_state, canary_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
    insert.bind_at(1, session);
    row.copy_to(insert, 2, 8);
    if (insert.run() > 0) {
      ++merge.counts.readings;
      merge.grown_sessions.insert(session);
    }
  }
}

void merge_all(Merge& merge) {
  check_other(merge);
  begin_import(merge);
  map_references(merge);
  merge_sessions(merge);
  merge_trials(merge);
  merge_telemetry(merge);
  merge_winners(merge);
  merge_probes(merge);
  for (const std::int64_t session : merge.known_sessions) {
    (merge.grown_sessions.contains(session) ? merge.counts.sessions_grown : merge.counts.sessions_known) += 1;
  }
}

}  // namespace

Query merge_read(Merge& merge, const std::string& sql) {
  return merge.from.guard(kReading, [&] { return merge.from.query(sql); });
}

bool merge_next(Merge& merge, Query& row) {
  return merge.from.guard(kReading, [&] { return row.step(); });
}

void merge_damaged(const Merge& merge, std::string_view what) {
  merge.from.fail(kReading, fmt::format("{}; the file was damaged or changed by another program: restore a copy", what),
                  SQLITE_CORRUPT);
}

std::int64_t merged_id(const Merge& merge, const MergeIds& ids, std::int64_t id, std::string_view table) {
  const auto found = ids.find(id);
  if (found == ids.end()) {
    merge_damaged(merge, fmt::format("row {} of table {} is missing", id, table));
  }
  return found->second;
}

std::int64_t last_inserted(Merge& merge) { return merge.to.database().getLastInsertRowid(); }

MergeCounts Store::merge(Store& other) {
  Merge merge{*other.impl_->connection, *impl_->connection};
  merge.to.guard(kMerging, [&] {
    try {
      // One moment of the other, whatever is written to it meanwhile.
      const auto snapshot =
          merge.from.guard(kReading, [&] { return std::make_unique<SQLite::Transaction>(merge.from.database()); });
      SQLite::Transaction transaction(merge.to.database(), SQLite::TransactionBehavior::IMMEDIATE);
      merge_all(merge);
      if (merge.counts.changed()) {
        transaction.commit();
      }
    } catch (const SQLite::Exception& fault) {
      if (fault.getErrorCode() == SQLITE_CONSTRAINT) {
        merge_damaged(merge, fmt::format("a row does not fit {} ({})", merge.to.file().string(), fault.what()));
      }
      throw;
    }
  });
  return merge.counts;
}

}  // namespace pascaline
