#include <fmt/format.h>
#include <sqlite3.h>

#include <random>
#include <set>

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

// An attempt with what is needed to judge and to settle it.
struct LeftAttempt {
  std::int64_t session_id = 0;
  ContextIds context;
  Trial trial;
  std::string config_text;
};

ProcessIdentity read_process(Query& row) {
  ProcessIdentity process;
  process.process_id = row.integer();
  process.start = row.integer();
  process.boot_id = row.text();
  return process;
}

// Sessions of the device that say they run and whose process is gone.
std::set<std::int64_t> dead_sessions(Connection& connection, std::int64_t device_id) {
  Query row = connection.query(
      "SELECT process_id, process_start, boot_id, id FROM sessions WHERE device_id = ? AND state = 'running'");
  row.bind(device_id);
  std::set<std::int64_t> dead;
  while (row.step()) {
    if (!is_alive(read_process(row))) {
      dead.insert(row.integer());
    }
  }
  return dead;
}

LeftAttempt read_attempt(Query& row) {
  LeftAttempt attempt;
  attempt.session_id = row.integer();
  attempt.context.device = row.integer();
  attempt.context.toolkit = row.integer();
  attempt.context.kernel = row.integer();
  attempt.context.space = row.integer();
  attempt.context.problem = row.integer();
  attempt.config_text = row.text();
  attempt.trial.config = Config::from_json(nlohmann::json::parse(row.text()));
  const std::string stage = row.text();
  attempt.trial.stage = known(trial_stage_from(stage), stage);
  attempt.trial.is_default = row.flag();
  attempt.trial.started_unix_ms = row.integer();
  attempt.trial.status = TrialStatus::crashed;
  attempt.trial.reason = "the process measuring it ended without a result";
  return attempt;
}

// Attempts of the device that no other living process holds.
std::vector<LeftAttempt> left_attempts(Connection& connection, std::int64_t device_id,
                                       const std::set<std::int64_t>& dead) {
  Query row = connection.query(
      "SELECT s.process_id, s.process_start, s.boot_id, s.state, a.session_id, a.device_id, a.toolkit_id, a.kernel_id, "
      "a.space_id, a.problem_id, a.config_text, a.config, a.stage, a.is_default, a.started_unix_ms "
      "FROM attempts a JOIN sessions s ON s.id = a.session_id WHERE a.device_id = ?");
  row.bind(device_id);
  const ProcessIdentity self = this_process();
  std::vector<LeftAttempt> left;
  while (row.step()) {
    const bool own = read_process(row) == self;
    const bool ended = row.text() != "running";
    LeftAttempt attempt = read_attempt(row);
    if (own || ended || dead.contains(attempt.session_id)) {
      left.push_back(std::move(attempt));
    }
  }
  return left;
}

}  // namespace

std::int64_t Store::begin_session(SessionRow& row, std::int64_t device_id, std::int64_t toolkit_id) {
  if (row.uuid.empty()) {
    row.uuid = random_uuid();
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
            "started_unix_ms, state, searcher, seed, options, command_line, program_version) "
            "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
        .bind(row.uuid, device_id, toolkit_id, row.device_uuid, self.process_id, self.start, self.boot_id,
              row.started_unix_ms, row.state, row.searcher, static_cast<std::int64_t>(row.seed), row.options_json,
              row.command_line, row.program_version)
        .run();
    row.id = impl_->connection->database().getLastInsertRowid();
    return row.id;
  });
}

void Store::end_session(std::int64_t session_id, std::string_view state) {
  impl_->connection->guard("end a session", [&] {
    const int changed = impl_->connection->query("UPDATE sessions SET state = ?, finished_unix_ms = ? WHERE id = ?")
                            .bind(state, unix_ms_now(), session_id)
                            .run();
    if (changed == 0) {
      impl_->connection->fail("end a session", fmt::format("there is none with id {}", session_id), SQLITE_MISUSE);
    }
  });
}

std::vector<SessionRow> Store::sessions() const {
  return impl_->connection->guard("read the sessions", [&] {
    Query row = impl_->connection->query(
        "SELECT s.id, s.uuid, s.started_unix_ms, s.finished_unix_ms, s.state, s.command_line, s.searcher, s.seed, "
        "s.options, s.device_uuid, s.program_version, s.process_id, s.process_start, s.boot_id, "
        "d.kind, d.name, d.compute_capability, d.sm_count, d.memory_bytes, d.limits, "
        "k.compiler, k.version, k.target, k.driver_version FROM sessions s JOIN devices d ON d.id = s.device_id "
        "JOIN toolkits k ON k.id = s.toolkit_id ORDER BY s.started_unix_ms DESC, s.id DESC");
    std::vector<SessionRow> sessions;
    while (row.step()) {
      SessionRow session;
      session.id = row.integer();
      session.uuid = row.text();
      session.started_unix_ms = row.integer();
      session.finished_unix_ms = row.optional_integer();
      session.state = row.text();
      session.command_line = row.text();
      session.searcher = row.text();
      session.seed = static_cast<std::uint64_t>(row.integer());
      session.options_json = row.text();
      session.device_uuid = row.text();
      session.program_version = row.text();
      const ProcessIdentity process = read_process(row);
      session.alive = session.state == "running" && is_alive(process);
      session.device = read_device(row);
      session.toolkit = read_toolkit(row);
      sessions.push_back(std::move(session));
    }
    return sessions;
  });
}

void Store::begin_attempt(std::int64_t session_id, const ContextIds& context, const Config& config, TrialStage stage,
                          bool is_default) {
  impl_->connection->guard("note an attempt", [&] {
    impl_->connection
        ->query(
            "INSERT OR REPLACE INTO attempts (session_id, device_id, toolkit_id, kernel_id, space_id, problem_id, "
            "config_text, config, stage, is_default, started_unix_ms) VALUES (?,?,?,?,?,?,?,?,?,?,?)")
        .bind(session_id, context.device, context.toolkit, context.kernel, context.space, context.problem,
              config.text(), config.json().dump(), name_of(stage), is_default, unix_ms_now())
        .run();
  });
}

void Store::Impl::forget_attempt(std::int64_t session_id, const ContextIds& context, const std::string& config_text) {
  connection
      ->query("DELETE FROM attempts WHERE session_id = ? AND kernel_id = ? AND problem_id = ? AND config_text = ?")
      .bind(session_id, context.kernel, context.problem, config_text)
      .run();
}

int Store::settle_attempts(std::int64_t device_id) {
  return impl_->connection->guard("settle what dead sessions left", [&] {
    int count = 0;
    impl_->transact([&] {
      const std::set<std::int64_t> dead = dead_sessions(*impl_->connection, device_id);
      for (const LeftAttempt& attempt : left_attempts(*impl_->connection, device_id, dead)) {
        impl_->insert_trial(attempt.session_id, attempt.context, attempt.trial);
        impl_->forget_attempt(attempt.session_id, attempt.context, attempt.config_text);
        ++count;
      }
      for (const std::int64_t session : dead) {
        // Its last trial is the best there is for when it ended.
        impl_->connection
            ->query(
                "UPDATE sessions SET state = 'interrupted', finished_unix_ms = coalesce((SELECT max(started_unix_ms) "
                "FROM trials WHERE session_id = sessions.id), started_unix_ms) WHERE id = ?")
            .bind(session)
            .run();
      }
    });
    return count;
  });
}

void Store::add_telemetry(std::int64_t session_id, const TelemetryRow& row) {
  impl_->connection->guard("store a sensor reading", [&] {
    impl_->connection
        ->query(
            "INSERT INTO telemetry (session_id, unix_ms, temperature_c, sm_clock_mhz, memory_clock_mhz, power_w, "
            "throttle_reasons, governor_state) VALUES (?,?,?,?,?,?,?,?)")
        .bind(session_id, row.unix_ms, row.temperature_c, row.sm_clock_mhz, row.memory_clock_mhz, row.power_w,
              row.throttle_reasons, row.governor_state)
        .run();
  });
}

std::vector<TelemetryRow> Store::telemetry(std::int64_t session_id) const {
  return impl_->connection->guard("read the sensor readings", [&] {
    Query row = impl_->connection->query(
        "SELECT unix_ms, temperature_c, sm_clock_mhz, memory_clock_mhz, power_w, throttle_reasons, governor_state "
        "FROM telemetry WHERE session_id = ? ORDER BY unix_ms, id");
    row.bind(session_id);
    std::vector<TelemetryRow> readings;
    while (row.step()) {
      TelemetryRow reading;
      reading.unix_ms = row.integer();
      reading.temperature_c = row.optional_real();
      reading.sm_clock_mhz = row.optional_real();
      reading.memory_clock_mhz = row.optional_real();
      reading.power_w = row.optional_real();
      reading.throttle_reasons = row.optional_integer();
      reading.governor_state = row.text();
      readings.push_back(std::move(reading));
    }
    return readings;
  });
}

}  // namespace pascaline
