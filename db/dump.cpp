#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <nlohmann/json.hpp>

#include "db/raw_statement.hpp"
#include "db/store_impl.hpp"
#include "db/trial_columns.hpp"

namespace pascaline {
namespace {

using Visit = std::function<void(std::string_view)>;

void append_text(std::string& line, std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f && c != '"' && c != '\\';
  });
  if (plain) {
    line += '"';
    line += text;
    line += '"';
  } else {
    line += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
}

// JSON knows no infinity; what is not a number is not stored.
void append_real(std::string& line, double value) {
  if (std::isinf(value)) {
    line += value > 0 ? "\"infinity\"" : "\"-infinity\"";
  } else {
    fmt::format_to(std::back_inserter(line), "{}", value);
  }
}

// A value as it is written; `is_json`: a text that is JSON itself.
void append_value(std::string& line, const RawStatement& row, int column, bool is_json) {
  switch (row.type(column)) {
    case SQLITE_INTEGER:
      fmt::format_to(std::back_inserter(line), "{}", row.integer(column));
      break;
    case SQLITE_FLOAT:
      append_real(line, row.real(column));
      break;
    case SQLITE_NULL:
      line += "null";
      break;
    default:
      is_json ? static_cast<void>(line += row.text(column)) : append_text(line, row.text(column));
  }
}

// `"name":value` of the columns from `first` on; what is NULL is left out. A column named `json:NAME` is JSON.
void append_members(std::string& line, const RawStatement& row, int first) {
  constexpr std::string_view kJson = "json:";
  for (int column = first; column < row.columns(); ++column) {
    if (row.type(column) == SQLITE_NULL) {
      continue;
    }
    std::string_view name = row.name(column);
    const bool is_json = name.starts_with(kJson);
    name.remove_prefix(is_json ? kJson.size() : 0);
    line += ',';
    append_text(line, name);
    line += ':';
    append_value(line, row, column, is_json);
  }
}

// `,"name":[[...],...]` of the rows that hang on one; nothing if there are none.
void append_lists(std::string& line, std::string_view name, RawStatement& rows, std::int64_t id) {
  rows.bind(1, id);
  bool any = false;
  while (rows.step()) {
    line += any ? ",[" : fmt::format(",\"{}\":[[", name);
    for (int column = 0; column < rows.columns(); ++column) {
      line += column > 0 ? "," : "";
      append_value(line, rows, column, false);
    }
    line += ']';
    any = true;
  }
  rows.run();
  line += any ? "]" : "";
}

// What is equal in the columns that a query sorts by is put into the order of the lines themselves.
class Sorted {
 public:
  explicit Sorted(const Visit& visit) : visit_(visit) {}
  void add(std::string key, std::string line) {
    if (key != key_) {
      flush();
      key_ = std::move(key);
    }
    lines_.push_back(std::move(line));
  }
  void flush() {
    std::sort(lines_.begin(), lines_.end());
    for (const std::string& line : lines_) {
      visit_(line);
    }
    lines_.clear();
  }

 private:
  const Visit& visit_;
  std::string key_;
  std::vector<std::string> lines_;
};

using Appendix = std::function<void(std::string&, std::int64_t)>;

// Rows of one kind. `columns` begins with an id that is not written; `order` are numbers of columns (1 the first after
// the id) as SQL has them.
struct Kind {
  std::string_view name;
  std::string columns;
  std::string from;
  int keys = 1;  // that many columns after the id are sorted by
};

void dump_kind(Connection& connection, const Kind& kind, const Visit& visit, const Appendix& append = {}) {
  std::string order;
  for (int i = 0; i < kind.keys; ++i) {
    order += fmt::format("{}{}", i > 0 ? ", " : "", 2 + i);
  }
  RawStatement row(connection, fmt::format("SELECT {} FROM {} ORDER BY {}", kind.columns, kind.from, order));
  Sorted sorted(visit);
  while (row.step()) {
    std::string key;
    row.append_to(key, 1, kind.keys);
    std::string line = fmt::format("{{\"row\":\"{}\"", kind.name);
    append_members(line, row, 1);
    if (append) {
      append(line, row.integer(0));
    }
    line += '}';
    sorted.add(std::move(key), std::move(line));
  }
  sorted.flush();
}

constexpr std::string_view kDevice = "d.kind AS device_kind, d.name AS device, d.compute_capability, d.sm_count";
constexpr std::string_view kToolkit = "k.compiler, k.version AS compiler_version, k.target, k.driver_version";

void dump_references(Connection& connection, const Visit& visit) {
  dump_kind(connection, {"device", fmt::format("d.id, {}, d.memory_bytes, d.limits", kDevice), "devices d", 4}, visit);
  dump_kind(connection, {"toolkit", fmt::format("k.id, {}", kToolkit), "toolkits k", 4}, visit);
  dump_kind(connection, {"kernel", "id, name AS kernel, source_hash", "kernels", 2}, visit);
  dump_kind(connection, {"space", "id, kernel, hash AS space_hash, json(json) AS \"json:space\"", "spaces", 2}, visit);
  dump_kind(
      connection,
      {"problem",
       "id, text AS problem, json(dimensions) AS \"json:dimensions\", json(types) AS \"json:types\", data, flops, "
       "bytes",
       "problems", 1},
      visit);
}

// One that runs is written as it would be merged: interrupted after its last trial.
void dump_sessions(Connection& connection, const Visit& visit) {
  RawStatement readings(
      connection,
      "SELECT unix_ms, temperature_c, sm_clock_mhz, memory_clock_mhz, power_w, throttle_reasons, "
      "governor_state, canary_us FROM telemetry WHERE session_id = ? ORDER BY 1, 2, 3, 4, 5, 6, 7, 8");
  dump_kind(connection,
            {"session",
             fmt::format("s.id, s.uuid AS session, {}, {}, s.device_uuid, s.run_uuid, s.started_unix_ms, "
                         "coalesce(s.finished_unix_ms, max(s.started_unix_ms, coalesce((SELECT max(started_unix_ms) "
                         "FROM trials WHERE session_id = s.id), 0))) AS finished_unix_ms, CASE s.state WHEN 'running' "
                         "THEN 'interrupted' ELSE s.state END AS state, s.spent_ms, s.searcher, s.seed, s.options, "
                         "s.command_line, s.program_version, s.process_id, s.process_start, s.boot_id, "
                         "json(s.progress) AS \"json:progress\"",
                         kDevice, kToolkit),
             "sessions s JOIN devices d ON d.id = s.device_id JOIN toolkits k ON k.id = s.toolkit_id", 1},
            visit, [&](std::string& line, std::int64_t id) { append_lists(line, "readings", readings, id); });
}

// Members of a trial with the configuration as JSON, in the order of its columns.
std::string trial_members() {
  std::string members;
  std::string_view rest = trial_columns();
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find(", "));
    rest.remove_prefix(std::min(rest.size(), name.size() + 2));
    if (name != "config_text" && name != "stage" && name != "started_unix_ms") {  // they are sorted by
      members += name == "config" ? ", json(t.config) AS \"json:config\"" : fmt::format(", t.{}", name);
    }
  }
  return members;
}

void dump_trials(Connection& connection, const Visit& visit) {
  RawStatement samples(
      connection,
      "SELECT ordinal, time_us, temperature_c, sm_clock_mhz, mark, power_w FROM samples WHERE trial_id "
      "= ? ORDER BY ordinal");
  dump_kind(
      connection,
      {"trial",
       fmt::format("t.id, s.uuid AS session, t.started_unix_ms, p.text AS problem, t.stage, t.config_text, {}, {}, "
                   "n.source_hash, x.hash AS space_hash{}, (SELECT config_text FROM trials o WHERE o.id = "
                   "t.shared_trial_id) AS shares_result_of",
                   kDevice, kToolkit, trial_members()),
       "trials t JOIN sessions s ON s.id = t.session_id JOIN devices d ON d.id = t.device_id JOIN toolkits k ON "
       "k.id = t.toolkit_id JOIN kernels n ON n.id = t.kernel_id JOIN spaces x ON x.id = t.space_id JOIN problems "
       "p ON p.id = t.problem_id",
       5},
      visit, [&](std::string& line, std::int64_t id) { append_lists(line, "samples", samples, id); });
}

void dump_decisions(Connection& connection, std::string_view name, std::string_view table, std::string_view more,
                    const Visit& visit) {
  dump_kind(
      connection,
      {name,
       fmt::format("0, p.text AS problem, w.objective, n.source_hash, {}, {}, w.decided_unix_ms{}, s.uuid AS "
                   "session, t.started_unix_ms, t.stage, t.config_text, t.median_us, w.baseline_median_us, "
                   "w.baseline_low_us, w.baseline_high_us, w.baseline_count, w.baseline_score, w.confidence",
                   kDevice, kToolkit, more),
       fmt::format("{} w JOIN trials t ON t.id = w.trial_id JOIN sessions s ON s.id = t.session_id JOIN devices d "
                   "ON d.id = w.device_id JOIN toolkits k ON k.id = w.toolkit_id JOIN kernels n ON n.id = "
                   "w.kernel_id JOIN problems p ON p.id = w.problem_id",
                   table),
       12},
      visit);
}

void dump_probes(Connection& connection, const Visit& visit) {
  RawStatement values(
      connection,
      "SELECT quantity, median, low, high, spread, samples, steady FROM probe_values WHERE probe_id = ? "
      "ORDER BY quantity");
  RawStatement chains(connection,
                      "SELECT variant, conflicts, slots, low, high, samples FROM probe_chains WHERE probe_id = ? ORDER "
                      "BY ordinal");
  dump_kind(connection,
            {"probe",
             fmt::format("b.id, b.uuid AS probe, {}, {}, b.device_uuid, b.program_version, b.started_unix_ms, "
                         "b.finished_unix_ms, b.temperature_c, b.throttled, json(b.left_out) AS \"json:left_out\"",
                         kDevice, kToolkit),
             "probes b JOIN devices d ON d.id = b.device_id JOIN toolkits k ON k.id = b.toolkit_id", 1},
            visit, [&](std::string& line, std::int64_t id) {
              append_lists(line, "values", values, id);
              append_lists(line, "chains", chains, id);
            });
}

}  // namespace

void Store::for_each_line(const std::function<void(std::string_view)>& visit) const {
  Connection& connection = *impl_->connection;
  connection.guard("write out its rows", [&] {
    const SQLite::Transaction moment(connection.database());
    dump_references(connection, visit);
    dump_sessions(connection, visit);
    dump_trials(connection, visit);
    dump_decisions(connection, "decision", "decisions", ", w.superseded", visit);
    dump_decisions(connection, "winner", "winners", "", visit);
    dump_probes(connection, visit);
  });
}

}  // namespace pascaline
