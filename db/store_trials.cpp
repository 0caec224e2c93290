#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include <nlohmann/json.hpp>

#include "db/rows.hpp"
#include "db/store_impl.hpp"
#include "db/trial_columns.hpp"

namespace pascaline {
namespace {

// A sample that counts has no mark.
std::optional<std::string_view> mark_name(SampleMark mark) {
  return mark == SampleMark::none ? std::nullopt : std::optional(name_of(mark));
}

void insert_samples(Connection& connection, std::int64_t trial_id, const std::vector<Sample>& samples) {
  Query insert = connection.query(
      "INSERT INTO samples (trial_id, ordinal, time_us, mark, temperature_c, sm_clock_mhz, power_w) "
      "VALUES (?, ?, ?, ?, ?, ?, ?)");
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = samples[i];
    insert
        .bind(trial_id, static_cast<std::int64_t>(i), sample.time_us, mark_name(sample.mark), sample.temperature_c,
              sample.sm_clock_mhz, sample.power_w)
        .run();
  }
}

SampleMark read_mark(Query& row) {
  const std::string name = row.text();
  return known(sample_mark_from(name), name);
}

std::vector<Sample> read_samples(Connection& connection, std::int64_t trial_id) {
  Query row = connection.query(
      "SELECT time_us, coalesce(mark, 'none'), temperature_c, sm_clock_mhz, power_w FROM samples WHERE trial_id = ? "
      "ORDER BY ordinal");
  row.bind(trial_id);
  std::vector<Sample> samples;
  while (row.step()) {
    Sample sample;
    sample.time_us = row.real();
    sample.mark = read_mark(row);
    sample.temperature_c = row.optional_real();
    sample.sm_clock_mhz = row.optional_real();
    sample.power_w = row.optional_real();
    samples.push_back(sample);
  }
  return samples;
}

// What `read_stored` reads.
std::string select_stored() {
  return fmt::format("SELECT id, session_id, {}, {}, source_hash, space_hash, {} FROM trial_details", kDetailDevice,
                     kDetailToolkit, detail_trial_columns());
}

// `bind_filter` binds what this asks for, in the same order.
std::string select_trials(const TrialFilter& filter) {
  std::string sql = select_stored();
  std::string glue = " WHERE ";
  const auto narrow = [&](bool wanted, std::string_view condition) {
    if (wanted) {
      sql += glue;
      sql += condition;
      glue = " AND ";
    }
  };
  narrow(!filter.kernel.empty(), "kernel = ?");
  narrow(!filter.problem.empty(), "problem = ?");
  narrow(filter.status.has_value(), "status = ?");
  narrow(filter.session_id.has_value(), "session_id = ?");
  narrow(filter.trial_id.has_value(), "id = ?");
  narrow(filter.with_energy, "energy_mj IS NOT NULL");
  return sql + " ORDER BY id";
}

void bind_filter(Query& query, const TrialFilter& filter) {
  int index = 0;
  if (!filter.kernel.empty()) {
    query.bind_at(++index, filter.kernel);
  }
  if (!filter.problem.empty()) {
    query.bind_at(++index, filter.problem);
  }
  if (filter.status) {
    query.bind_at(++index, name_of(*filter.status));
  }
  if (filter.session_id) {
    query.bind_at(++index, *filter.session_id);
  }
  if (filter.trial_id) {
    query.bind_at(++index, *filter.trial_id);
  }
}

// The last search-stage trial of each session is ranked among those of the same configuration, as Store::Known says. An
// interval of fewer than 6 samples is only their range and counts as wider than any other.
constexpr std::string_view kSelectKnown =
    "WITH latest AS (SELECT max(id) AS id, config_text, config, status, median_us, low_us, high_us, sample_count, "
    "binary_hash, session_id IN (SELECT id FROM sessions WHERE run_uuid = ?1) AS in_run FROM trials WHERE "
    "device_id = ?2 AND toolkit_id = ?3 AND kernel_id = ?4 AND problem_id = ?5 AND stage = 'search' "
    "GROUP BY config_text, session_id), "
    "ranked AS (SELECT *, max(in_run) OVER (PARTITION BY config_text) AS any_in_run, row_number() OVER (PARTITION BY "
    "config_text ORDER BY status = 'wrong_result' DESC, median_us IS NOT NULL DESC, sample_count < 6, "
    "(high_us - low_us) / median_us, id DESC) AS place FROM latest) "
    "SELECT config, status, median_us, id, binary_hash, any_in_run, EXISTS (SELECT 1 FROM trials f WHERE "
    "f.device_id = ?2 AND f.toolkit_id = ?3 AND f.kernel_id = ?4 AND f.problem_id = ?5 AND f.stage = 'finals' "
    "AND f.config_text = ranked.config_text AND f.median_us IS NULL) FROM ranked WHERE place = 1 ORDER BY config_text";

StoredTrial read_stored(Query& row) {
  StoredTrial stored;
  stored.id = row.integer();
  stored.session_id = row.integer();
  stored.device = read_device(row);
  stored.toolkit = read_toolkit(row);
  stored.kernel.source_hash = row.text();
  stored.space_hash = row.text();
  stored.trial = read_trial(row);
  stored.kernel.name = stored.trial.problem.kernel;
  return stored;
}

// Of each session the time between the begins of successive trials of one problem; what is left of the session's time
// went into everything else. Longer gaps than an hour are pauses.
void read_pace(Connection& connection, std::int64_t device_id, const std::string& kernel, Objective objective,
               TrialCost& cost) {
  Query row = connection.query(
      "WITH t AS (SELECT session_id, problem_id, stage, started_unix_ms AS at_ms, "
      "lag(problem_id) OVER w AS last_problem, lag(stage) OVER w AS last_stage, lag(started_unix_ms) OVER w AS last_ms "
      "FROM trials WHERE device_id = ? AND kernel_id IN (SELECT id FROM kernels WHERE name = ?) "
      "WINDOW w AS (PARTITION BY session_id ORDER BY id)), "
      "g AS (SELECT session_id, problem_id, iif(stage = 'search' AND last_stage = 'search' AND "
      "problem_id = last_problem AND at_ms - last_ms BETWEEN 0 AND 3600000, at_ms - last_ms, NULL) AS gap_ms FROM t), "
      "s AS (SELECT session_id, total(gap_ms) AS gaps_ms, count(gap_ms) AS gaps, "
      "count(DISTINCT problem_id) AS problems FROM g GROUP BY session_id) "
      "SELECT total(s.gaps_ms), total(s.gaps), "
      "total(max(0, r.spent_ms - s.gaps_ms)) FILTER (WHERE r.state <> 'running' AND r.spent_ms > 0), "
      "total(s.problems) FILTER (WHERE r.state <> 'running' AND r.spent_ms > 0), "
      "coalesce((SELECT p.objective FROM plans p WHERE p.run_uuid = r.run_uuid), 'time') AS objective "
      "FROM s JOIN sessions r ON r.id = s.session_id WHERE r.import_id IS NULL GROUP BY objective");
  row.bind(device_id, kernel);
  double gaps_ms = 0;
  double gaps = 0;
  struct Else {
    double spent_ms = 0;
    double problems = 0;
  };
  std::map<std::string, Else> by_objective;
  while (row.step()) {
    gaps_ms += row.real();
    gaps += row.real();
    Else each;
    each.spent_ms = row.real();
    each.problems = row.real();
    if (each.problems > 0) {
      by_objective.emplace(row.text(), each);
    }
  }
  cost.pace_ms = gaps > 0 ? gaps_ms / gaps : 0;
  cost.paced = static_cast<std::int64_t>(gaps);
  // Finals by another objective take much longer.
  auto used = by_objective.find(std::string(name_of(objective)));
  cost.with_objective = used != by_objective.end();
  used = used == by_objective.end() ? by_objective.find(std::string(name_of(Objective::time))) : used;
  used = used == by_objective.end() ? by_objective.begin() : used;
  if (used != by_objective.end()) {
    cost.problem_ms = used->second.spent_ms / used->second.problems;
    cost.problems = static_cast<std::int64_t>(used->second.problems);
  }
}

}  // namespace

const std::string& Store::Impl::problem_text(std::int64_t problem_id) {
  std::string& text = problem_texts[problem_id];
  if (text.empty()) {
    Query row = connection->query("SELECT text FROM problems WHERE id = ?");
    text = row.bind(problem_id).step() ? row.text() : "";
  }
  return text;
}

std::int64_t Store::Impl::insert_trial(std::int64_t session_id, const ContextIds& context, const Trial& trial) {
  constexpr int kIds = 7;
  Query insert = connection->query(fmt::format(
      "INSERT INTO trials (session_id, device_id, toolkit_id, kernel_id, space_id, problem_id, shared_trial_id, {}) "
      "VALUES ({})",
      trial_columns(), parameter_list(kIds + trial_column_count())));
  insert.bind(session_id, context.device, context.toolkit, context.kernel, context.space, context.problem,
              trial.shared_trial == 0 ? std::nullopt : std::optional(trial.shared_trial));
  bind_trial_columns(insert, kIds + 1, trial);
  insert.run();
  const std::int64_t id = connection->database().getLastInsertRowid();
  insert_samples(*connection, id, trial.samples);
  return id;
}

StoredTrial Store::Impl::trial_with_samples(std::int64_t trial_id) {
  StoredTrial stored;
  {
    Query row = connection->query(select_stored() + " WHERE id = ?");
    if (!row.bind(trial_id).step()) {
      throw Error(fmt::format("there is no trial {}", trial_id));
    }
    stored = read_stored(row);
  }
  stored.trial.samples = read_samples(*connection, trial_id);
  if (stored.trial.samples.empty() && stored.trial.shared_trial != 0) {
    stored.trial.samples = read_samples(*connection, stored.trial.shared_trial);
  }
  return stored;
}

std::int64_t Store::add_trial(std::int64_t session_id, const ContextIds& context, const Trial& trial) {
  return impl_->connection->guard("store a trial", [&] {
    if (trial.problem.text() != impl_->problem_text(context.problem)) {
      impl_->connection->fail(
          "store a trial",
          fmt::format("it is of '{}' and its context is of '{}'; this is a fault of the program, please report it",
                      trial.problem.text(), impl_->problem_text(context.problem)),
          SQLITE_MISUSE);
    }
    std::int64_t id = 0;
    impl_->transact([&] {
      id = impl_->insert_trial(session_id, context, trial);
      impl_->forget_attempt(session_id, context, trial.config.text());
    });
    return id;
  });
}

std::vector<Store::Known> Store::known_trials(const ContextIds& context, const std::string& run_uuid) const {
  return impl_->connection->guard("read the known trials", [&] {
    Query row = impl_->connection->query(std::string(kSelectKnown));
    row.bind(run_uuid, context.device, context.toolkit, context.kernel, context.problem);
    std::vector<Known> result;
    while (row.step()) {
      Known entry;
      entry.config = read_config(row, "trials");
      const std::string status = row.text();
      entry.status = known(trial_status_from(status), status);
      entry.median_us = row.real();
      entry.trial_id = row.integer();
      entry.binary_hash = row.text();
      entry.in_run = row.flag();
      entry.failed_in_finals = row.flag();
      result.push_back(std::move(entry));
    }
    return result;
  });
}

std::vector<Store::Measured> Store::measured(std::int64_t device_id, const std::string& kernel) const {
  return impl_->connection->guard("read what was measured of a kernel", [&] {
    Query row = impl_->connection->query(
        "SELECT t.toolkit_id, t.kernel_id, p.id, max(t.id), p.kernel, p.dimensions, p.types, p.data, t.config, "
        "t.median_us "
        "FROM trials t JOIN problems p ON p.id = t.problem_id WHERE t.device_id = ? AND t.stage = 'search' "
        "AND t.median_us IS NOT NULL AND t.kernel_id IN (SELECT id FROM kernels WHERE name = ?) "
        "GROUP BY t.toolkit_id, t.kernel_id, p.id, t.config_text ORDER BY t.toolkit_id, t.kernel_id, p.id");
    row.bind(device_id, kernel);
    std::vector<Measured> measured;
    while (row.step()) {
      Measured key;
      key.toolkit = row.integer();
      key.kernel = row.integer();
      key.problem_id = row.integer();
      const std::int64_t trial = row.integer();
      key.problem = read_problem(row);
      if (measured.empty() || measured.back().toolkit != key.toolkit || measured.back().kernel != key.kernel ||
          measured.back().problem_id != key.problem_id) {
        measured.push_back(std::move(key));
      }
      Config config = read_config(row, "trials");
      measured.back().times_us.emplace_back(std::move(config), row.real());
      measured.back().last_trial = std::max(measured.back().last_trial, trial);
    }
    std::stable_sort(measured.begin(), measured.end(),
                     [](const Measured& a, const Measured& b) { return a.last_trial > b.last_trial; });
    return measured;
  });
}

std::vector<Store::MeasuredElsewhere> Store::measured_elsewhere(std::int64_t device_id,
                                                                const std::string& kernel) const {
  return impl_->connection->guard("read what other devices measured of a kernel", [&] {
    Query row = impl_->connection->query(fmt::format(
        "SELECT d.id, k.toolkit_id, k.kernel_id, p.id, k.trials, {}, p.kernel, p.dimensions, p.types, p.data FROM "
        "(SELECT device_id, toolkit_id, kernel_id, problem_id, count(DISTINCT config_text) AS trials FROM trials "
        "WHERE device_id IN (SELECT o.id FROM devices o JOIN devices h ON h.id = ?1 WHERE o.id <> h.id AND "
        "o.kind = h.kind) AND kernel_id IN (SELECT id FROM kernels WHERE name = ?2) AND stage = 'search' "
        "GROUP BY device_id, toolkit_id, kernel_id, problem_id) k "
        "JOIN (SELECT id, kind AS device_kind, name AS device, compute_capability, sm_count, memory_bytes, limits "
        "FROM devices) d ON d.id = k.device_id JOIN problems p ON p.id = k.problem_id "
        "ORDER BY d.id, k.toolkit_id, k.kernel_id, p.id",
        kDetailDevice));
    row.bind(device_id, kernel);
    std::vector<MeasuredElsewhere> keys;
    while (row.step()) {
      MeasuredElsewhere key;
      key.device_id = row.integer();
      key.toolkit = row.integer();
      key.kernel = row.integer();
      key.problem_id = row.integer();
      key.trials = row.integer();
      key.device = read_device(row);
      key.problem = read_problem(row);
      keys.push_back(std::move(key));
    }
    return keys;
  });
}

std::vector<std::pair<Config, double>> Store::times_us(const MeasuredElsewhere& key) const {
  return impl_->connection->guard("read what another device measured of a problem", [&] {
    Query row = impl_->connection->query(
        "SELECT max(id), config, median_us FROM trials WHERE device_id = ? AND toolkit_id = ? AND kernel_id = ? AND "
        "problem_id = ? AND stage = 'search' AND median_us IS NOT NULL GROUP BY config_text ORDER BY config_text");
    row.bind(key.device_id, key.toolkit, key.kernel, key.problem_id);
    std::vector<std::pair<Config, double>> times;
    while (row.step()) {
      std::ignore = row.integer();
      Config config = read_config(row, "trials");
      times.emplace_back(std::move(config), row.real());
    }
    return times;
  });
}

std::vector<TakenOver> Store::taken_over(std::int64_t trial_id) const {
  return impl_->connection->guard("read what a search took over", [&] {
    Query row = impl_->connection->query(
        "SELECT s.options, p.text FROM trials w JOIN trials t ON t.device_id = w.device_id AND t.toolkit_id = "
        "w.toolkit_id AND t.kernel_id = w.kernel_id AND t.problem_id = w.problem_id AND t.config_text = w.config_text "
        "JOIN sessions s ON s.id = t.session_id JOIN problems p ON p.id = t.problem_id "
        "WHERE w.id = ? ORDER BY t.stage <> 'search', t.id LIMIT 1");
    row.bind(trial_id);
    if (!row.step()) {
      return std::vector<TakenOver>{};
    }
    const std::string options = row.text();
    return taken_over_of(options, row.text());
  });
}

TrialCost Store::trial_costs(std::int64_t device_id, const std::string& kernel, Objective objective) const {
  return impl_->connection->guard("read what trials cost", [&] {
    // Finals measure several configurations in turn and keep no time of their own.
    Query row = impl_->connection->query(
        "SELECT avg(compile_ms) FILTER (WHERE compile_ms > 0), count(*) FILTER (WHERE compile_ms > 0), "
        "avg(verify_ms + measure_ms) FILTER (WHERE median_us IS NOT NULL), count(median_us) "
        "FROM trials WHERE device_id = ? AND kernel_id IN (SELECT id FROM kernels WHERE name = ?) "
        "AND stage = 'search'");
    row.bind(device_id, kernel);
    TrialCost cost;
    if (row.step()) {
      cost.compile_ms = row.real();
      cost.compiled = row.integer();
      cost.run_ms = row.real();
      cost.ran = row.integer();
    }
    read_pace(*impl_->connection, device_id, kernel, objective, cost);
    return cost;
  });
}

void Store::for_each_trial(const TrialFilter& filter, const std::function<void(const StoredTrial&)>& visit) const {
  Connection& connection = *impl_->connection;
  constexpr std::string_view kAction = "read the trials";
  Query row = connection.guard(kAction, [&] { return connection.query(select_trials(filter)); });
  StoredTrial stored;
  const auto advance = [&] {
    if (!row.step()) {
      return false;
    }
    stored = read_stored(row);
    if (filter.with_samples) {
      stored.trial.samples = read_samples(connection, stored.id);
    }
    return true;
  };
  connection.guard(kAction, [&] { bind_filter(row, filter); });
  while (connection.guard(kAction, advance)) {
    visit(stored);  // outside the guard: what it throws is not the store's failure
  }
}

std::vector<StoredTrial> Store::trials(const TrialFilter& filter) const {
  std::vector<StoredTrial> result;
  for_each_trial(filter, [&](const StoredTrial& trial) { result.push_back(trial); });
  return result;
}

std::vector<std::pair<SampleMark, int>> Store::marked_samples(std::int64_t trial_id) const {
  return impl_->connection->guard("read the marks of samples", [&] {
    Query row = impl_->connection->query(
        "SELECT mark, count(*) FROM samples WHERE trial_id = ? AND mark IS NOT NULL GROUP BY mark ORDER BY 2 DESC, 1");
    row.bind(trial_id);
    std::vector<std::pair<SampleMark, int>> marks;
    while (row.step()) {
      const SampleMark mark = read_mark(row);
      marks.emplace_back(mark, static_cast<int>(row.integer()));
    }
    return marks;
  });
}

}  // namespace pascaline
