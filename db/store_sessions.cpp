#include <fmt/format.h>
#include <sqlite3.h>

#include <random>

#include "db/process_identity.hpp"
#include "db/rows.hpp"
#include "db/store_impl.hpp"

namespace pascaline {
namespace {

// RFC 4122, version 4.
std::string random_uuid() {
  std::random_device source;
  const auto draw = [&] { return static_cast<std::uint64_t>(source()) << 32 | source(); };
  const std::uint64_t high = (draw() & ~0xf000ULL) | 0x4000ULL;
  const std::uint64_t low = (draw() & ~(3ULL << 62)) | 2ULL << 62;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xffff, high & 0xffff, low >> 48,
                     low & 0xffffffffffffULL);
}

std::optional<std::string> json_or_null(const std::string& json) {
  return json.empty() ? std::nullopt : std::optional(json);
}

// Throws unless an UPDATE found its session.
void require_session(const Connection& connection, std::string_view action, std::int64_t session_id, int changed) {
  if (changed == 0) {
    connection.fail(action, fmt::format("there is none with id {}", session_id), SQLITE_MISUSE);
  }
}

void require_resumable(Connection& connection, std::string_view action, std::int64_t session_id,
                       const ProcessIdentity& self) {
  Query row =
      connection.query(fmt::format("SELECT {}, state, import_id IS NOT NULL FROM sessions WHERE id = ?", kProcess));
  const bool found = row.bind(session_id).step();
  require_session(connection, action, session_id, found ? 1 : 0);
  const ProcessIdentity owner = read_process(row);
  if (row.text() == "running" && owner != self && is_alive(owner)) {
    connection.fail(action,
                    fmt::format("session {} runs in process {}; wait until it ends, or end it with `kill {}`",
                                session_id, owner.process_id, owner.process_id),
                    SQLITE_MISUSE);
  }
  if (row.flag()) {
    connection.fail(
        action,
        fmt::format("session {} was imported from another file and can be resumed only there; begin a new sweep",
                    session_id),
        SQLITE_MISUSE);
  }
}

SessionRow read_session(Query& row) {
  SessionRow session;
  session.id = row.integer();
  session.uuid = row.text();
  session.run_uuid = row.text();
  session.started_unix_ms = row.integer();
  session.finished_unix_ms = row.optional_integer();
  session.state = row.text();
  session.command_line = row.text();
  session.searcher = row.text();
  session.seed = static_cast<std::uint64_t>(row.integer());
  session.options_json = row.text();
  session.device_uuid = row.text();
  session.program_version = row.text();
  session.spent_ms = row.integer();
  session.progress = row.text();
  const ProcessIdentity process = read_process(row);
  session.process_id = process.process_id;
  session.alive = session.state == "running" && is_alive(process);
  session.imported_from = row.text();
  session.has_plan = row.flag();
  session.device = read_device(row);
  session.toolkit = read_toolkit(row);
  return session;
}

}  // namespace

std::string Store::new_run() { return random_uuid(); }

std::int64_t Store::begin_session(SessionRow& row, std::int64_t device_id, std::int64_t toolkit_id) {
  if (row.uuid.empty()) {
    row.uuid = random_uuid();
  }
  if (row.run_uuid.empty()) {
    row.run_uuid = random_uuid();
  }
  if (row.started_unix_ms == 0) {
    row.started_unix_ms = unix_ms_now();
  }
  row.state = "running";
  row.finished_unix_ms.reset();
  return impl_->connection->guard("begin a session", [&] {
    const ProcessIdentity self = this_process();
    impl_->connection
        ->query(
            "INSERT INTO sessions (uuid, device_id, toolkit_id, device_uuid, process_id, process_start, boot_id, "
            "started_unix_ms, state, searcher, seed, options, command_line, program_version, "
            "run_uuid, spent_ms, progress) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
        .bind(row.uuid, device_id, toolkit_id, row.device_uuid, self.process_id, self.start, self.boot_id,
              row.started_unix_ms, row.state, row.searcher, static_cast<std::int64_t>(row.seed), row.options_json,
              row.command_line, row.program_version, row.run_uuid, row.spent_ms, json_or_null(row.progress))
        .run();
    row.id = impl_->connection->database().getLastInsertRowid();
    return row.id;
  });
}

void Store::end_session(std::int64_t session_id, std::string_view state) {
  constexpr std::string_view kAction = "end a session";
  impl_->connection->guard(kAction, [&] {
    // The system's clock may have stepped back since.
    const int changed =
        impl_->connection
            ->query("UPDATE sessions SET state = ?, finished_unix_ms = max(?, started_unix_ms) WHERE id = ?")
            .bind(state, unix_ms_now(), session_id)
            .run();
    require_session(*impl_->connection, kAction, session_id, changed);
  });
}

void Store::resume_session(std::int64_t session_id) {
  constexpr std::string_view kAction = "resume a session";
  Connection& connection = *impl_->connection;
  connection.guard(kAction, [&] {
    const ProcessIdentity self = this_process();
    impl_->transact([&] {
      require_resumable(connection, kAction, session_id, self);
      connection
          .query(
              "UPDATE sessions SET process_id = ?, process_start = ?, boot_id = ?, state = 'running', "
              "finished_unix_ms = NULL WHERE id = ?")
          .bind(self.process_id, self.start, self.boot_id, session_id)
          .run();
    });
  });
}

void Store::note_progress(std::int64_t session_id, std::int64_t spent_ms, const std::string& progress_json,
                          std::span<const TelemetryRow> readings) {
  constexpr std::string_view kAction = "store a session's progress";
  impl_->connection->guard(kAction, [&] {
    impl_->transact([&] {
      const int changed = impl_->connection->query("UPDATE sessions SET spent_ms = ?, progress = ? WHERE id = ?")
                              .bind(spent_ms, json_or_null(progress_json), session_id)
                              .run();
      require_session(*impl_->connection, kAction, session_id, changed);
      for (const TelemetryRow& reading : readings) {
        impl_->insert_telemetry(session_id, reading);
      }
    });
  });
}

std::vector<SessionRow> Store::sessions() const {
  return impl_->connection->guard("read the sessions", [&] {
    // By id: the system's clock may have stepped back.
    Query row = impl_->connection->query(
        "SELECT s.id, s.uuid, s.run_uuid, s.started_unix_ms, s.finished_unix_ms, s.state, s.command_line, "
        "s.searcher, s.seed, s.options, s.device_uuid, s.program_version, s.spent_ms, "
        "coalesce(s.progress, ''), s.process_id, s.process_start, s.boot_id, "
        "coalesce(i.source, ''), EXISTS (SELECT 1 FROM plans p WHERE p.run_uuid = s.run_uuid), d.kind, d.name, "
        "d.compute_capability, d.sm_count, d.memory_bytes, d.limits, "
        "k.compiler, k.version, k.target, k.driver_version FROM sessions s JOIN devices d ON d.id = s.device_id "
        "JOIN toolkits k ON k.id = s.toolkit_id LEFT JOIN imports i ON i.id = s.import_id ORDER BY s.id DESC");
    std::vector<SessionRow> sessions;
    while (row.step()) {
      sessions.push_back(read_session(row));
    }
    return sessions;
  });
}

}  // namespace pascaline
