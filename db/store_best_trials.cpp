#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include <nlohmann/json.hpp>

#include "db/best_trials.hpp"
#include "db/rows.hpp"
#include "db/store_impl.hpp"

namespace pascaline {
namespace {

// What a measurement is kept under, but for the configuration.
struct MeasurementKey {
  std::int64_t device = 0;
  std::int64_t toolkit = 0;
  std::int64_t kernel = 0;
  std::int64_t problem = 0;
};

// What is chosen for one device, target and problem.
struct Choice {
  MeasurementKey key;
  std::optional<std::int64_t> winner{};
  std::optional<TimeSummary> baseline{};
  std::pair<std::int64_t, std::int64_t> newest{};  // start and id of the trial or, of a winner, of the decision
};

using Choices = std::map<std::tuple<std::int64_t, std::string, std::int64_t>, Choice>;

// `bind_best` binds what this asks for: ?1 the kernel's name, ?2 the device's, ?3 the sessions as JSON, or NULL.
constexpr std::string_view kBestFilter =
    " (?1 IS NULL OR p.kernel = ?1) AND (?2 IS NULL OR d.name = ?2) AND "
    "(?3 IS NULL OR t.session_id IN (SELECT value FROM json_each(?3)))";

std::optional<std::string> sessions_json(const BestFilter& filter) {
  return filter.sessions.empty() ? std::nullopt : std::optional(nlohmann::json(filter.sessions).dump());
}

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

Query& bind_best(Query& query, const BestFilter& filter) {
  return query.bind(unless_empty(filter.kernel), unless_empty(filter.device), sessions_json(filter));
}

Choice& next_choice(Query& row, Choices& choices, MeasurementKey& key) {
  key.device = row.integer();
  key.toolkit = row.integer();
  key.kernel = row.integer();
  key.problem = row.integer();
  return choices[{key.device, row.text(), key.problem}];
}

void choose_newest_keys(Connection& connection, const BestFilter& filter, Choices& choices) {
  Query row = connection.query(
      "SELECT t.device_id, t.toolkit_id, t.kernel_id, t.problem_id, k.target, max(t.started_unix_ms), max(t.id) "
      "FROM trials t JOIN devices d ON d.id = t.device_id JOIN toolkits k ON k.id = t.toolkit_id "
      "JOIN problems p ON p.id = t.problem_id WHERE t.median_us IS NOT NULL AND" +
      std::string(kBestFilter) + " GROUP BY t.device_id, t.toolkit_id, t.kernel_id, t.problem_id");
  bind_best(row, filter);
  while (row.step()) {
    MeasurementKey key;
    Choice& choice = next_choice(row, choices, key);
    const std::int64_t started = row.integer();
    const std::pair newest(started, row.integer());
    if (choice.key.device == 0 || newest > choice.newest) {
      choice.key = key;
      choice.newest = newest;
    }
  }
}

void choose_winners(Connection& connection, const BestFilter& filter, Choices& choices) {
  Query row = connection.query(
      "SELECT w.device_id, w.toolkit_id, w.kernel_id, w.problem_id, k.target, w.decided_unix_ms, w.trial_id, "
      "w.baseline_median_us, w.baseline_low_us, w.baseline_high_us, w.baseline_count "
      "FROM winners w JOIN trials t ON t.id = w.trial_id JOIN devices d ON d.id = w.device_id "
      "JOIN toolkits k ON k.id = w.toolkit_id JOIN problems p ON p.id = w.problem_id WHERE w.objective = 'time' AND" +
      std::string(kBestFilter));
  bind_best(row, filter);
  while (row.step()) {
    MeasurementKey key;
    Choice& choice = next_choice(row, choices, key);
    const std::int64_t decided = row.integer();
    const std::int64_t trial = row.integer();
    if (!choice.winner || std::pair(decided, trial) > choice.newest) {
      choice = {key, trial, read_summary(row), {decided, trial}};
    }
  }
}

// Of one key: ?1 to ?4, the sessions as ?5, the stage as ?6. Of equal times the first trial counts.
constexpr std::string_view kOfKey =
    " FROM trials WHERE device_id = ?1 AND toolkit_id = ?2 AND kernel_id = ?3 AND problem_id = ?4 AND median_us IS NOT "
    "NULL "
    "AND (?5 IS NULL OR session_id IN (SELECT value FROM json_each(?5))) AND stage = ?6";

std::optional<std::int64_t> fastest_of(Connection& connection, const BestFilter& filter, const MeasurementKey& key,
                                       TrialStage stage) {
  Query row = connection.query(stage == TrialStage::finals
                                   ? "SELECT id FROM (SELECT max(id) AS id, median_us" + std::string(kOfKey) +
                                         " GROUP BY config_text) ORDER BY median_us, id LIMIT 1"
                                   : "SELECT id" + std::string(kOfKey) + " ORDER BY median_us, id LIMIT 1");
  row.bind(key.device, key.toolkit, key.kernel, key.problem, sessions_json(filter), name_of(stage));
  return row.step() ? std::optional(row.integer()) : std::nullopt;
}

std::optional<TimeSummary> latest_default(Connection& connection, const BestFilter& filter, const MeasurementKey& key,
                                          TrialStage stage) {
  Query row = connection.query("SELECT median_us, low_us, high_us, sample_count" + std::string(kOfKey) +
                               " AND is_default = 1 ORDER BY id DESC LIMIT 1");
  row.bind(key.device, key.toolkit, key.kernel, key.problem, sessions_json(filter), name_of(stage));
  return row.step() ? read_summary(row) : std::nullopt;
}

}  // namespace

std::vector<BestTrial> Store::best_trials(const BestFilter& filter) const {
  Connection& connection = *impl_->connection;
  return connection.guard("read the best trials", [&] {
    const Savepoint moment(connection.database());
    Choices choices;
    choose_newest_keys(connection, filter, choices);
    choose_winners(connection, filter, choices);
    std::vector<BestTrial> trials;
    for (auto& [where, choice] : choices) {
      BestTrial best;
      std::optional<std::int64_t> id = choice.winner;
      best.baseline = choice.baseline;
      for (const TrialStage stage : {TrialStage::finals, TrialStage::search}) {
        if (!id) {
          id = fastest_of(connection, filter, choice.key, stage);
          best.baseline = latest_default(connection, filter, choice.key, stage);
        }
      }
      best.stored = impl_->trial_with_samples(id.value());
      best.decided = best.stored.trial.stage == TrialStage::finals;
      trials.push_back(std::move(best));
    }
    return trials;
  });
}

}  // namespace pascaline
