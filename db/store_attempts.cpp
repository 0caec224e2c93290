#include <algorithm>
#include <set>

#include "db/rows.hpp"
#include "db/store_impl.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kMaxTries = 2;

// A left attempt with what is needed to settle it.
struct Left {
  std::int64_t session_id = 0;
  ContextIds context;
  std::int64_t tries = 0;
  std::string boot_id;
  Trial trial;  // without a problem: insert_trial takes that from the context
};

// Sessions of the device that say they run and whose process is gone.
std::set<std::int64_t> dead_sessions(Connection& connection, std::int64_t device_id) {
  Query row = connection.query("SELECT " + std::string(kProcess) +
                               ", id FROM sessions WHERE device_id = ? AND state = 'running'");
  row.bind(device_id);
  std::set<std::int64_t> dead;
  while (row.step()) {
    if (!is_alive(read_process(row))) {
      dead.insert(row.integer());
    }
  }
  return dead;
}

Left read_left(Query& row) {
  Left left;
  left.session_id = row.integer();
  left.context.device = row.integer();
  left.context.toolkit = row.integer();
  left.context.kernel = row.integer();
  left.context.space = row.integer();
  left.context.problem = row.integer();
  left.tries = row.integer();
  left.boot_id = row.text();
  left.trial.config = read_config(row, "attempts");
  const std::string stage = row.text();
  left.trial.stage = known(trial_stage_from(stage), stage);
  left.trial.is_default = row.flag();
  left.trial.started_unix_ms = row.integer();
  return left;
}

// Attempts of the device that no other living process holds, or that `own_session` holds; the oldest session first.
std::vector<Left> find_left(Connection& connection, std::int64_t device_id, std::int64_t own_session = 0) {
  Query row = connection.query(
      "SELECT s.process_id, s.process_start, s.boot_id, s.state, a.session_id, a.device_id, a.toolkit_id, a.kernel_id, "
      "a.space_id, a.problem_id, a.tries, a.boot_id, a.config, a.stage, a.is_default, a.started_unix_ms "
      "FROM attempts a JOIN sessions s ON s.id = a.session_id WHERE a.device_id = ? ORDER BY a.session_id, "
      "a.started_unix_ms");
  row.bind(device_id);
  const ProcessIdentity self = this_process();
  std::vector<Left> found;
  while (row.step()) {
    const ProcessIdentity process = read_process(row);
    const bool running = row.text() == "running";
    Left left = read_left(row);
    if (!running || left.session_id == own_session || process == self || !is_alive(process)) {
      found.push_back(std::move(left));
    }
  }
  return found;
}

bool same_measurement(const ContextIds& a, const ContextIds& b) {
  return a.device == b.device && a.toolkit == b.toolkit && a.kernel == b.kernel && a.problem == b.problem;
}

}  // namespace

void Store::Impl::forget_attempt(std::int64_t session_id, const ContextIds& context, const std::string& config_text) {
  connection
      ->query(
          "DELETE FROM attempts WHERE session_id = ? AND toolkit_id = ? AND kernel_id = ? AND problem_id = ? AND "
          "config_text = ?")
      .bind(session_id, context.toolkit, context.kernel, context.problem, config_text)
      .run();
}

void Store::begin_attempt(std::int64_t session_id, const ContextIds& context, const Config& config, TrialStage stage,
                          bool is_default) {
  impl_->connection->guard("record an attempt", [&] {
    const std::string text = config.text();
    impl_->transact([&] {
      // Kernels run in a process of their own, so a sweep that was killed says nothing of the configuration; a machine
      // that went down with it may.
      const std::string boot_id = this_process().boot_id;
      std::int64_t tries = 1;
      for (const Left& left : find_left(*impl_->connection, context.device, session_id)) {
        if (same_measurement(left.context, context) && left.trial.config == config) {
          tries = std::max(tries, left.tries + (left.boot_id == boot_id ? 0 : 1));
          impl_->forget_attempt(left.session_id, left.context, text);
        }
      }
      impl_->connection
          ->query(
              "INSERT INTO attempts (session_id, device_id, toolkit_id, kernel_id, space_id, problem_id, config_text, "
              "config, stage, is_default, started_unix_ms, tries, boot_id) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)")
          .bind(session_id, context.device, context.toolkit, context.kernel, context.space, context.problem, text,
                config.json().dump(), name_of(stage), is_default, unix_ms_now(), tries, boot_id)
          .run();
    });
  });
}

void Store::end_attempt(std::int64_t session_id, const ContextIds& context, const Config& config) {
  impl_->connection->guard("forget an attempt", [&] { impl_->forget_attempt(session_id, context, config.text()); });
}

int Store::settle_attempts(std::int64_t device_id) {
  return impl_->connection->guard("clean up after interrupted sessions", [&] {
    int count = 0;
    impl_->transact([&] {
      for (Left& left : find_left(*impl_->connection, device_id)) {
        if (left.tries < kMaxTries) {
          continue;
        }
        left.trial.status = TrialStatus::crashed;
        left.trial.reason = "the machine went down twice while it was on the device";
        impl_->insert_trial(left.session_id, left.context, left.trial);
        impl_->forget_attempt(left.session_id, left.context, left.trial.config.text());
        ++count;
      }
      for (const std::int64_t session : dead_sessions(*impl_->connection, device_id)) {
        // Its last trial is the best there is for when it ended.
        impl_->connection
            ->query(
                "UPDATE sessions SET state = 'interrupted', finished_unix_ms = max(started_unix_ms, coalesce((SELECT "
                "max(started_unix_ms) FROM trials WHERE session_id = sessions.id), 0)) WHERE id = ?")
            .bind(session)
            .run();
      }
    });
    return count;
  });
}

std::vector<LeftAttempt> Store::left_attempts(const ContextIds& context) const {
  return impl_->connection->guard("read what interrupted sessions left", [&] {
    std::vector<LeftAttempt> found;
    std::set<std::string> seen;  // two sweeps at once may both have died on it
    for (const Left& left : find_left(*impl_->connection, context.device)) {
      if (same_measurement(left.context, context) && seen.insert(left.trial.config.text()).second) {
        found.push_back({left.trial.config, left.trial.stage, left.trial.is_default});
      }
    }
    return found;
  });
}

}  // namespace pascaline
