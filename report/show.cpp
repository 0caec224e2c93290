#include "report/show.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <map>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/device/emulator_name.hpp"
#include "db/outdated_winner.hpp"
#include "db/overview.hpp"
#include "report/pareto.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

using Json = nlohmann::json;

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<Json>> rows;
  std::string when_empty;
  std::string below{};  ///< a line after the rows of text
};

// Columns that text leaves out where no row has anything in them.
constexpr std::array kRareColumns{std::string_view("energy_mj"),     std::string_view("sustained_us"),
                                  std::string_view("objective"),     std::string_view("score"),
                                  std::string_view("default_score"), std::string_view("note"),
                                  std::string_view("imported_from")};

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

// Samples that do not count, and whose result this is; null if there is nothing to say.
Json note(const Store& store, std::int64_t trial_id, const Trial& trial) {
  std::string marks;
  int marked = 0;
  for (const auto& [mark, count] : store.marked_samples(trial_id)) {
    marks += fmt::format("{}{} {}", marks.empty() ? "" : ", ", count, name_of(mark));
    marked += count;
  }
  std::string text = marked > 0 ? fmt::format("{} samples not counted: {}", marked, marks) : "";
  if (trial.shared_trial != 0) {
    text += fmt::format("{}shares the result of trial {}", text.empty() ? "" : "; ", trial.shared_trial);
  }
  return text.empty() ? Json() : Json(text);
}

bool is_full(const Table& table, const ShowOptions& options) {
  return options.limit > 0 && table.rows.size() >= options.limit;
}

// What `default_us` is of, where that is not the default.
Json baseline_text(const Store& store, const Winner& winner) {
  if (!winner.baseline) {
    return {};
  }
  const auto stand_in = store.stand_in_of(winner.trial_id);
  return stand_in ? Json(clean_line(
                        fmt::format("{} (the default: {})", stand_in->config.text(), default_fate(stand_in->why))))
                  : Json();
}

// 0 stands for what is not known: the emulated device has no registers, and other tuners do not tell.
template <typename Figure>
Json known_figure(Figure figure) {
  return figure > 0 ? Json(figure) : Json();
}

Json median(const std::optional<TimeSummary>& time) { return time ? Json(time->median_us) : Json(); }

Table sessions_table(const Store& store, const ShowOptions& options) {
  Table table{{"id", "started", "finished", "state", "device", "toolkit", "searcher", "seed"}, {}, "no sessions"};
  std::ranges::transform(kTrialCounts, std::back_inserter(table.columns), &TrialCount::name);
  table.columns.insert(table.columns.end(), {"uuid", "imported_from"});
  const std::map<std::int64_t, TrialCounts> counts = counts_by_session(store);
  for (const SessionRow& session : store.sessions()) {
    if (options.filter.session_id && session.id != *options.filter.session_id) {
      continue;
    }
    const bool dead = session.state == "running" && !session.alive;
    const auto known = counts.find(session.id);
    const TrialCounts of_session = known == counts.end() ? TrialCounts() : known->second;
    table.rows.push_back({session.id, utc_time(session.started_unix_ms), utc_time(session.finished_unix_ms.value_or(0)),
                          dead ? "died" : session.state, clean_name(session.device.name),
                          clean_name(session.toolkit.compiler + " " + session.toolkit.version + " " +
                                     shown_architecture(session.toolkit.target)),
                          clean_name(session.searcher), session.seed});
    std::vector<Json>& row = table.rows.back();
    for_each_count(of_session, [&](const TrialCount&, std::int64_t number) { row.emplace_back(number); });
    row.emplace_back(clean_name(session.uuid));
    row.emplace_back(session.imported_from.empty() ? Json() : Json(clean_name(session.imported_from)));
  }
  return table;
}

using TimeWinners = std::map<ParetoKey, Winner>;

ParetoKey key_of(const Winner& winner) {
  return pareto_key(winner.device, winner.toolkit, winner.kernel.source_hash, winner.trial.problem);
}

// Those that winners by other objectives are compared with.
TimeWinners time_winners(const Store& store, const ShowOptions& options) {
  TimeWinners winners;
  if (options.objective != Objective::time) {
    for (Winner& winner : store.winners(options.filter.kernel, nullptr, Objective::time)) {
      ParetoKey key = key_of(winner);
      winners.emplace(std::move(key), std::move(winner));
    }
  }
  return winners;
}

// Where databases were merged, one of several decisions is the winner; a search may have begun with what another device
// measured.
Json winner_note(const Store& store, const Winner& winner, const TimeWinners& by_time) {
  std::vector<std::string> parts;
  if (winner.trial.stage == TrialStage::search) {
    parts.emplace_back("provisional");
  }
  if (const auto found = by_time.find(key_of(winner)); found != by_time.end()) {
    if (auto why = why_outdated(winner, found->second)) {
      parts.push_back(*why + "; it is not used");
    }
  }
  if (const Json said = note(store, winner.trial_id, winner.trial); said.is_string()) {
    parts.push_back(said.get<std::string>());
  }
  if (winner.decisions > 1) {
    parts.push_back(fmt::format("best of {} decisions of merged databases", winner.decisions));
  }
  for (const TakenOver& taken_over : store.taken_over(winner.trial_id)) {
    parts.push_back(clean_line(fmt::format("the search began with {}", taken_over_text(taken_over))));
  }
  return parts.empty() ? Json() : Json(fmt::format("{}", fmt::join(parts, "; ")));
}

std::string no_winners_text(const ShowOptions& options) {
  return options.objective.value_or(Objective::time) == Objective::time
             ? "no winners"
             : fmt::format("no winners by {}: `pascaline sweep --objective {}` decides them",
                           phrase_of(*options.objective), name_of(*options.objective));
}

Table winners_table(const Store& store, const ShowOptions& options) {
  Table table{
      {"trial", "device", "compiler", "target", "problem", "default_us", "best_us", "speedup", "confidence", "config",
       "source", "decided", "objective", "score", "default_score", "energy_mj", "sustained_us", "baseline", "note"},
      {},
      no_winners_text(options)};
  const TimeWinners fastest = time_winners(store, options);
  const std::vector<Winner> winners = store.winners(options.filter.kernel, nullptr, options.objective);
  for (const Winner& winner : winners) {
    const std::string problem = winner.trial.problem.text();
    if (!options.filter.problem.empty() && problem != options.filter.problem) {
      continue;
    }
    const bool by_time = winner.objective == Objective::time;
    const bool comparable = winner.baseline && winner.trial.time && winner.trial.time->median_us > 0;
    table.rows.push_back(
        {winner.trial_id, clean_name(winner.device.name),
         clean_name(winner.toolkit.compiler + " " + winner.toolkit.version),
         clean_name(shown_architecture(winner.toolkit.target)), clean_line(problem), median(winner.baseline),
         median(winner.trial.time),
         comparable ? Json(winner.baseline->median_us / winner.trial.time->median_us) : Json(), winner.confidence,
         clean_line(winner.trial.config.text()), clean_line(winner.kernel.source_hash.substr(0, 8)),
         utc_time(winner.decided_unix_ms), by_time ? Json() : Json(name_of(winner.objective)),
         by_time ? Json() : number(stored_value(winner.trial, winner.objective)), number(winner.baseline_score),
         number(winner.trial.energy_mj), number(winner.trial.sustained_us), baseline_text(store, winner),
         winner_note(store, winner, fastest)});
    if (winner.trial.stage == TrialStage::search) {
      table.below = kProvisionalMeaning;
    }
    if (is_full(table, options)) {
      break;
    }
  }
  return table;
}

double sort_time(const StoredTrial& stored) {
  return stored.trial.time ? stored.trial.time->median_us : std::numeric_limits<double>::infinity();
}

Table trials_table(const Store& store, const ShowOptions& options) {
  Table table{{"id", "session", "device", "compiler", "target", "problem", "status", "stage", "median_us", "low_us",
               "high_us", "registers", "occupancy", "config", "reason", "energy_mj", "sustained_us", "note"},
              {},
              "no trials"};
  std::vector<StoredTrial> trials = store.trials(options.filter);
  std::sort(trials.begin(), trials.end(), [](const StoredTrial& a, const StoredTrial& b) {
    return std::pair(sort_time(a), -a.id) < std::pair(sort_time(b), -b.id);
  });
  for (const StoredTrial& stored : trials) {
    const Trial& trial = stored.trial;
    table.rows.push_back({stored.id, stored.session_id, clean_name(stored.device.name),
                          clean_name(stored.toolkit.compiler + " " + stored.toolkit.version),
                          clean_name(shown_architecture(stored.toolkit.target)), clean_line(trial.problem.text()),
                          name_of(trial.status), name_of(trial.stage), median(trial.time),
                          trial.time ? Json(trial.time->low_us) : Json(),
                          trial.time ? Json(trial.time->high_us) : Json(), known_figure(trial.resources.registers),
                          known_figure(trial.occupancy), clean_line(trial.config.text()), clean_line(trial.reason),
                          number(trial.energy_mj), number(trial.sustained_us), note(store, stored.id, trial)});
    if (is_full(table, options)) {
      break;
    }
  }
  return table;
}

Table make_table(const Store& store, const ShowOptions& options) {
  Table table = options.what == ShowWhat::sessions  ? sessions_table(store, options)
                : options.what == ShowWhat::winners ? winners_table(store, options)
                                                    : trials_table(store, options);
  if (options.limit > 0 && table.rows.size() > options.limit) {
    table.rows.resize(options.limit);
  }
  return table;
}

std::string cell_text(const Json& value) {
  if (value.is_null()) {
    return "-";
  }
  if (value.is_number_float()) {
    return short_number(value.get<double>());
  }
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void drop_empty_rare_columns(Table& table) {
  for (std::size_t column = table.columns.size(); column-- > 0;) {
    const bool rare = std::find(kRareColumns.begin(), kRareColumns.end(), table.columns[column]) != kRareColumns.end();
    if (!rare ||
        !std::all_of(table.rows.begin(), table.rows.end(), [&](const auto& row) { return row[column].is_null(); })) {
      continue;
    }
    table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(column));
    for (auto& row : table.rows) {
      row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
    }
  }
}

std::vector<std::size_t> column_widths(const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::size_t width = table.columns[column].size();
    for (const auto& row : table.rows) {
      width = std::max(width, display_width(cell_text(row[column])));
    }
    widths.push_back(width);
  }
  return widths;
}

void append_cell(std::string& line, const std::string& text, std::size_t width, bool right) {
  const std::string padding(width - std::min(width, display_width(text)), ' ');
  line += line.empty() ? "" : "  ";
  line += right ? padding + text : text + padding;
}

void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + "\n";
}

std::string table_text(Table table) {
  if (table.rows.empty()) {
    return table.when_empty + "\n";
  }
  drop_empty_rare_columns(table);
  const std::vector<std::size_t> widths = column_widths(table);
  std::string out;
  std::string header;
  for (std::size_t column = 0; column < widths.size(); ++column) {
    append_cell(header, table.columns[column], widths[column], table.rows[0][column].is_number());
  }
  append_line(out, header);
  for (const auto& row : table.rows) {
    std::string line;
    for (std::size_t column = 0; column < widths.size(); ++column) {
      append_cell(line, cell_text(row[column]), widths[column], row[column].is_number() || row[column].is_null());
    }
    append_line(out, line);
  }
  return table.below.empty() ? out : out + table.below + "\n";
}

std::vector<ParetoProblem> chosen_pareto(const Store& store, const ShowOptions& options) {
  std::vector<ParetoProblem> chosen;
  for (auto& [key, problem] : pareto_problems(store, options.filter.kernel)) {
    const bool wanted = options.filter.problem.empty() || problem.problem.text() == options.filter.problem;
    if (wanted && (options.limit == 0 || chosen.size() < options.limit)) {
      chosen.push_back(std::move(problem));
    }
  }
  return chosen;
}

std::string compiler_text(const ToolkitRow& toolkit) {
  return clean_line(fmt::format("{} {} for {}", toolkit.compiler, toolkit.version, shown_architecture(toolkit.target)));
}

std::string pareto_text(const Store& store, const ShowOptions& options) {
  const std::vector<ParetoProblem> problems = chosen_pareto(store, options);
  if (problems.empty()) {
    return "no problem has two configurations whose time and energy are both known; `pascaline sweep --objective "
           "energy` "
           "measures them on a card that reports its power\n";
  }
  std::string out;
  for (const ParetoProblem& problem : problems) {
    Table table{{"trial", "median_us", "energy_mj", "front", "is", "config"}, {}, ""};
    for (const ParetoPoint& point : problem.points) {
      table.rows.push_back({point.trial_id, point.median_us, point.energy_mj, point.on_front ? "yes" : "no",
                            pareto_role(problem, point), clean_line(point.config.text())});
    }
    out += fmt::format("{}{} on {}, {}, source {}\n", out.empty() ? "" : "\n", clean_line(problem.problem.text()),
                       clean_name(problem.device.name), compiler_text(problem.toolkit),
                       clean_line(problem.kernel.source_hash.substr(0, 8)));
    out += table_text(std::move(table)) + pareto_sentence(problem) + "\n";
  }
  return out;
}

Json trial_or_null(const std::optional<std::int64_t>& trial) { return trial ? Json(*trial) : Json(); }

Json pareto_list(const Store& store, const ShowOptions& options) {
  Json list = Json::array();
  for (const ParetoProblem& problem : chosen_pareto(store, options)) {
    Json points = Json::array();
    for (const ParetoPoint& point : problem.points) {
      points.push_back({{"trial", point.trial_id},
                        {"median_us", point.median_us},
                        {"energy_mj", point.energy_mj},
                        {"front", point.on_front},
                        {"default", point.is_default},
                        {"config", clean_line(point.config.text())}});
    }
    list.push_back({{"problem", clean_line(problem.problem.text())},
                    {"device", clean_name(problem.device.name)},
                    {"compiler", clean_name(problem.toolkit.compiler + " " + problem.toolkit.version)},
                    {"target", clean_name(shown_architecture(problem.toolkit.target))},
                    {"source", clean_line(problem.kernel.source_hash.substr(0, 8))},
                    {"time_winner", trial_or_null(problem.time_winner)},
                    {"energy_winner", trial_or_null(problem.energy_winner)},
                    {"edp_winner", trial_or_null(problem.edp_winner)},
                    {"summary", pareto_sentence(problem)},
                    {"points", std::move(points)}});
  }
  return list;
}

}  // namespace

std::string show_text(const Store& store, const ShowOptions& options) {
  return options.what == ShowWhat::pareto ? pareto_text(store, options) : table_text(make_table(store, options));
}

std::size_t count_shown(const Store& store, ShowOptions options) {
  options.limit = 0;
  return options.what == ShowWhat::pareto   ? chosen_pareto(store, options).size()
         : options.what == ShowWhat::trials ? store.trials(options.filter).size()
                                            : make_table(store, options).rows.size();
}

nlohmann::json show_json(const Store& store, const ShowOptions& options) {
  if (options.what == ShowWhat::pareto) {
    return pareto_list(store, options);
  }
  const Table table = make_table(store, options);
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json object = Json::object();
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      object[table.columns[column]] = row[column];
    }
    rows.push_back(std::move(object));
  }
  return rows;
}

}  // namespace pascaline
