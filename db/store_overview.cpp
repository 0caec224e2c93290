#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include "db/overview.hpp"
#include "db/rows.hpp"
#include "db/store_impl.hpp"

namespace pascaline {
namespace {

std::string select_briefs(bool one_kernel) {
  return fmt::format(
      "SELECT id, session_id, device_id, toolkit_id, kernel_id, space_id, problem_id, status, stage, is_default, "
      "median_us, low_us, high_us, sample_count, verify_ms, measure_ms, started_unix_ms, config, reason, "
      "shared_trial_id IS NOT NULL FROM trials{} "
      "ORDER BY id",
      one_kernel ? " WHERE kernel_id IN (SELECT id FROM kernels WHERE name = ?)" : "");
}

void read_brief(Query& row, TrialBrief& brief) {
  brief.id = row.integer();
  brief.session = row.integer();
  brief.context.device = row.integer();
  brief.context.toolkit = row.integer();
  brief.context.kernel = row.integer();
  brief.context.space = row.integer();
  brief.context.problem = row.integer();
  const std::string status = row.text();
  brief.status = known(trial_status_from(status), status);
  const std::string stage = row.text();
  brief.stage = known(trial_stage_from(stage), stage);
  brief.is_default = row.flag();
  brief.time = read_summary(row);
  brief.verify_ms = row.real();
  brief.measure_ms = row.real();
  brief.started_unix_ms = row.integer();
  brief.config_json = row.text();
  brief.reason = row.text();
  brief.is_duplicate = row.flag();
}

std::string select_sample_counts() {
  std::string sql = "SELECT trial_id, count(*), count(*) - count(mark)";
  for (std::size_t mark = 1; mark < kSampleMarks; ++mark) {
    sql += fmt::format(", count(CASE mark WHEN '{}' THEN 1 END)", name_of(static_cast<SampleMark>(mark)));
  }
  return sql + " FROM samples GROUP BY trial_id ORDER BY trial_id";
}

}  // namespace

double total_ms(const TrialTimes& times) {
  double total = 0;
  for_each_part(times, [&](const char*, double part_ms) { total += part_ms; });
  return total;
}

TrialTimes& operator+=(TrialTimes& to, const TrialTimes& others) {
  std::vector<double> parts;
  for_each_part(others, [&](const char*, double part_ms) { parts.push_back(part_ms); });
  auto part = parts.begin();
  for_each_part(to, [&](const char*, double& sum_ms) { sum_ms += *part++; });
  to.trials += others.trials;
  to.dropped += others.dropped;
  return to;
}

void Store::at_one_moment(const std::function<void()>& work) const {
  constexpr std::string_view kAction = "start reading";
  Connection& connection = *impl_->connection;
  if (sqlite3_get_autocommit(connection.database().getHandle()) == 0) {
    work();
    return;
  }
  // Deferred: it holds no lock that a writer would wait for. What it has read it gives up when it ends.
  const auto snapshot =
      connection.guard(kAction, [&] { return std::make_unique<SQLite::Transaction>(connection.database()); });
  work();
}

void Store::for_each_brief(const std::string& kernel, const std::function<void(const TrialBrief&)>& visit) const {
  constexpr std::string_view kAction = "read the trials";
  Connection& connection = *impl_->connection;
  Query row = connection.guard(kAction, [&] { return connection.query(select_briefs(!kernel.empty())); });
  if (!kernel.empty()) {
    connection.guard(kAction, [&] { row.bind(kernel); });
  }
  TrialBrief brief;
  const auto advance = [&] {
    const bool found = row.step();
    if (found) {
      read_brief(row, brief);
    }
    return found;
  };
  while (connection.guard(kAction, advance)) {
    visit(brief);  // outside the guard: what it throws is not the store's failure
  }
}

void Store::for_each_sample_count(const std::function<void(const SampleCounts&)>& visit) const {
  constexpr std::string_view kAction = "count the samples";
  Connection& connection = *impl_->connection;
  Query row = connection.guard(kAction, [&] { return connection.query(select_sample_counts()); });
  SampleCounts counts;
  const auto advance = [&] {
    const bool found = row.step();
    if (found) {
      counts.trial_id = row.integer();
      counts.total = static_cast<std::size_t>(row.integer());
      for (std::size_t& marked : counts.marked) {
        marked = static_cast<std::size_t>(row.integer());
      }
    }
    return found;
  };
  while (connection.guard(kAction, advance)) {
    visit(counts);
  }
}

std::vector<TrialTimes> Store::trial_times(const std::string& run_uuid) const {
  constexpr std::string_view kAction = "add up the trials' times";
  Connection& connection = *impl_->connection;
  return connection.guard(kAction, [&] {
    Query row = connection.query(fmt::format(
        "SELECT session_id, count(*), sum(status = 'dropped'), sum(load_ms), sum(inputs_ms), "
        "sum(max(0, verify_ms - load_ms - inputs_ms)), "
        "sum(warm_up_ms), sum(evict_ms), sum(sample_ms), sum(wait_ms), "
        "sum(max(0, measure_ms - warm_up_ms - evict_ms - sample_ms - wait_ms)) FROM trials "
        "WHERE stage = 'search' AND shared_trial_id IS NULL AND load_ms > 0{} GROUP BY session_id ORDER BY session_id",
        run_uuid.empty() ? "" : " AND session_id IN (SELECT id FROM sessions WHERE run_uuid = ?)"));
    if (!run_uuid.empty()) {
      row.bind(run_uuid);
    }
    std::vector<TrialTimes> sessions;
    while (row.step()) {
      TrialTimes& times = sessions.emplace_back();
      times.session = row.integer();
      times.trials = row.integer();
      times.dropped = row.integer();
      for_each_part(times, [&](const char*, double& part_ms) { part_ms = row.real(); });
    }
    return sessions;
  });
}

std::vector<VersionTrials> Store::trials_by_version() const {
  Connection& connection = *impl_->connection;
  return connection.guard("count the trials", [&] {
    Query row = connection.query(
        "SELECT t.session_id, n.name, n.source_hash, s.hash, t.stage, t.status, t.shared_trial_id IS NOT NULL, "
        "count(*) FROM trials t JOIN kernels n ON n.id = t.kernel_id "
        "JOIN spaces s ON s.id = t.space_id GROUP BY t.session_id, t.kernel_id, t.space_id, 5, 6, 7 "
        "ORDER BY 1, t.kernel_id, t.space_id");
    std::vector<VersionTrials> versions;
    while (row.step()) {
      VersionTrials next;
      next.session = row.integer();
      next.kernel.name = row.text();
      next.kernel.source_hash = row.text();
      next.space_hash = row.text();
      if (versions.empty() || versions.back().session != next.session || versions.back().kernel != next.kernel ||
          versions.back().space_hash != next.space_hash) {
        versions.push_back(std::move(next));
      }
      const std::string stage = row.text();
      const std::string status = row.text();
      const bool is_duplicate = row.flag();
      versions.back().counts.add(known(trial_stage_from(stage), stage), known(trial_status_from(status), status),
                                 is_duplicate, row.integer());
    }
    return versions;
  });
}

std::map<std::int64_t, TrialCounts> counts_by_session(const Store& store) {
  std::map<std::int64_t, TrialCounts> sessions;
  for (const VersionTrials& version : store.trials_by_version()) {
    sessions[version.session] += version.counts;
  }
  return sessions;
}

ContextRows Store::rows_of(const ContextIds& context) const {
  constexpr std::string_view kAction = "read what trials refer to";
  Connection& connection = *impl_->connection;
  return connection.guard(kAction, [&] {
    Query row = connection.query(
        "SELECT d.kind, d.name, d.compute_capability, d.sm_count, d.memory_bytes, d.limits, k.compiler, k.version, "
        "k.target, k.driver_version, n.name, n.source_hash, s.json, p.kernel, p.dimensions, p.types, p.data, p.flops, "
        "p.bytes "
        "FROM devices d, toolkits k, kernels n, spaces s, problems p "
        "WHERE d.id = ? AND k.id = ? AND n.id = ? AND s.id = ? AND p.id = ?");
    if (!row.bind(context.device, context.toolkit, context.kernel, context.space, context.problem).step()) {
      connection.fail(kAction, "a row that a trial refers to is missing; the file was damaged: restore a copy",
                      SQLITE_CORRUPT);
    }
    ContextRows rows;
    rows.device = read_device(row);
    rows.toolkit = read_toolkit(row);
    rows.kernel.name = row.text();
    rows.kernel.source_hash = row.text();
    rows.space_json = row.text();
    rows.problem = read_problem(row);
    rows.flops = row.real();
    rows.bytes = row.real();
    return rows;
  });
}

}  // namespace pascaline
