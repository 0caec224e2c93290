#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "app/sweep/searcher_names.hpp"
#include "app/text.hpp"
#include "cli/command.hpp"
#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "db/exchange/read.hpp"
#include "db/exchange/store_spaces.hpp"
#include "report/text.hpp"
#include "tuner/replay/replay.hpp"
#include "tuner/search/searcher.hpp"

namespace pascaline::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct ReplayCommandOptions {
  std::vector<std::string> files;
  ReplayOptions replay;
  SpaceFilter filter;
  bool no_score = false;
  bool as_json = false;
};

// A database holds many recorded spaces; those with too few configurations to search are of no use.
constexpr std::size_t kMinTrials = 50;
constexpr int kMaxBudget = 1'000'000;

bool is_database(const fs::path& file) {
  std::error_code unseen;
  if (!fs::is_regular_file(file, unseen)) {
    return false;
  }
  std::ifstream stream(file, std::ios::binary);
  std::string magic(15, '\0');
  stream.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  return stream && magic == "SQLite format 3";
}

void add_spaces(const fs::path& file, const SpaceFilter& filter, std::vector<RecordedSpace>& spaces) {
  if (!is_database(file)) {
    spaces.push_back(read_recorded_space(file));
    RecordedSpace& space = spaces.back();
    space.name = clean_line(space.name);
    if (space.left_out > 0) {
      fmt::print(stderr, "{}: {} left out because the time is not positive\n", clean_line(file.string()),
                 counted(space.left_out, "configuration"));
    }
    if (std::none_of(space.trials.begin(), space.trials.end(),
                     [](const RecordedTrial& trial) { return trial.status == TrialStatus::ok; })) {
      throw Error(fmt::format("{}: none of its configurations worked, so there is nothing to find; leave out the file",
                              file.string()));
    }
    return;
  }
  const Store store(file, OpenMode::read_only);
  std::size_t small = 0;
  for (RecordedSpace& space : recorded_spaces(store, filter)) {
    const auto usable = std::count_if(space.trials.begin(), space.trials.end(),
                                      [](const RecordedTrial& trial) { return trial.status == TrialStatus::ok; });
    if (static_cast<std::size_t>(usable) < kMinTrials) {
      ++small;
      continue;
    }
    space.name = clean_line(space.name);
    spaces.push_back(std::move(space));
  }
  if (small > 0) {
    fmt::print(stderr, "{}: {} problem{} with fewer than {} usable trials left out\n", file.string(), small,
               small == 1 ? "" : "s", kMinTrials);
  }
}

// Files of several folders may share a name, as may problems of a database that were measured under several toolkits.
void number_equal_names(std::vector<RecordedSpace>& spaces) {
  std::map<std::string, int> count;
  for (RecordedSpace& space : spaces) {
    const int number = ++count[space.name];
    if (number > 1) {
      space.name += fmt::format(" ({})", number);
    }
  }
}

std::vector<RecordedSpace> read_all(const ReplayCommandOptions& options) {
  std::vector<RecordedSpace> spaces;
  for (const fs::path file : options.files) {
    if (!fs::is_directory(file)) {
      add_spaces(file, options.filter, spaces);
      continue;
    }
    std::vector<fs::path> inside;
    for (const auto& entry : fs::directory_iterator(file)) {
      const std::string name = entry.path().filename().string();
      const bool known = name.ends_with(".csv") || name.ends_with(".json") || name.ends_with(".gz") ||
                         name.ends_with(".db") || name.ends_with(".sqlite");
      if (entry.is_regular_file() && known) {
        inside.push_back(entry.path());
      }
    }
    if (inside.empty()) {
      throw Error(fmt::format("{} contains no recorded space (.csv, .json, .gz, .db)", file.string()));
    }
    std::sort(inside.begin(), inside.end());
    for (const fs::path& each : inside) {
      add_spaces(each, options.filter, spaces);
    }
  }
  if (spaces.empty()) {
    throw Error("no recorded space to search was given");
  }
  number_equal_names(spaces);
  return spaces;
}

// Infinity stands for "no working configuration was found", which JSON has no number for.
json finite(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json medians(const std::map<int, Quartiles>& ratios) {
  json out = json::object();
  for (const auto& [budget, ratio] : ratios) {
    out[std::to_string(budget)] = finite(ratio.median);
  }
  return out;
}

json details(const std::map<int, Quartiles>& ratios, const std::optional<double>& score) {
  json quarters = json::object();
  for (const auto& [budget, ratio] : ratios) {
    quarters[std::to_string(budget)] = {
        {"q1", finite(ratio.low)}, {"median", finite(ratio.median)}, {"q3", finite(ratio.high)}};
  }
  return {{"ratio", std::move(quarters)}, {"score", score ? finite(*score) : json(nullptr)}};
}

json as_json(const std::vector<ReplayResult>& results, const std::vector<ReplaySummary>& summaries,
             const ReplayCommandOptions& options) {
  json out = json::object();
  json all = json::object();
  for (const ReplaySummary& summary : summaries) {
    out[summary.searcher] = medians(summary.ratios);
    all[summary.searcher] = details(summary.ratios, summary.score);
  }
  json spaces = json::object();
  json by_space = json::object();
  for (const ReplayResult& result : results) {
    spaces[result.space][result.searcher] = medians(result.ratios);
    json entry = details(result.ratios, result.score);
    entry["evaluations"] = result.evaluations;
    entry["evaluations_to_3_percent"] = finite(result.evaluations_to_3_percent);
    entry["proposal_ms"] = result.proposal_ms;
    if (result.sampling) {
      entry["sampling_ms_to_1_percent"] = {{"all", finite(result.sampling->all_ms)},
                                           {"precision", finite(result.sampling->precision_ms)},
                                           {"race", finite(result.sampling->race_ms)}};
    }
    by_space[result.space][result.searcher] = std::move(entry);
  }
  out["spaces"] = std::move(spaces);
  out["details"] = {{"repeats", options.replay.repeats},
                    {"seed", options.replay.seed},
                    {"batch", options.replay.batch},
                    {"searchers", std::move(all)},
                    {"spaces", std::move(by_space)}};
  return out;
}

std::string score_text(const std::optional<double>& score) { return score ? fmt::format("{:.3f}", *score) : "-"; }

std::string ratio_text(const Quartiles& ratio) {
  return std::isfinite(ratio.median) ? fmt::format("{:.3f} [{:.3f} {:.3f}]", ratio.median, ratio.low, ratio.high) : "-";
}

void print_table(const std::vector<ReplayResult>& results, const std::vector<ReplaySummary>& summaries,
                 const ReplayOptions& options) {
  std::vector<std::vector<std::string>> rows{{"space", "searcher"}};
  for (const int budget : options.budgets) {
    rows[0].push_back(fmt::format("after {}", budget));
  }
  for (const char* heading : {"score", "trials", "to 3 %", "ms"}) {
    rows[0].emplace_back(heading);
  }
  const auto add = [&](const std::string& space, const std::string& searcher, const auto& result) {
    std::vector<std::string> row{space, searcher};
    for (const int budget : options.budgets) {
      row.push_back(ratio_text(result.ratios.at(budget)));
    }
    row.push_back(score_text(result.score));
    rows.push_back(std::move(row));
  };
  for (const ReplayResult& result : results) {
    add(result.space, result.searcher, result);
    rows.back().push_back(fmt::format("{:.0f}", result.evaluations));
    rows.back().push_back(std::isfinite(result.evaluations_to_3_percent)
                              ? fmt::format("{:.0f}", result.evaluations_to_3_percent)
                              : "never");
    rows.back().push_back(fmt::format("{:.3f}", result.proposal_ms));
  }
  for (const ReplaySummary& summary : summaries) {
    add("geometric mean", summary.searcher, summary);
    rows.back().insert(rows.back().end(), {"", "", ""});
  }
  fmt::print("{}", aligned_columns(rows));
  fmt::print(
      "\nbest found / optimum after that many evaluations: median [quartiles] of {} repeats; score: performance over "
      "time against random search (1: the optimum at once, 0: random); ms: per proposal\n",
      options.repeats);
}

std::string ms_text(double time_ms) { return std::isfinite(time_ms) ? fmt::format("{:.1f}", time_ms) : "never"; }

void print_sampling(const std::vector<ReplayResult>& results) {
  std::vector<std::vector<std::string>> rows{{"space", "searcher", "all ms", "precision ms", "race ms", "all / race"}};
  std::size_t without = 0;
  for (const ReplayResult& result : results) {
    if (!result.sampling) {
      ++without;
      continue;
    }
    const SamplingTimes& times = *result.sampling;
    const double ratio = times.all_ms / times.race_ms;
    rows.push_back({result.space, result.searcher, ms_text(times.all_ms), ms_text(times.precision_ms),
                    ms_text(times.race_ms), std::isfinite(ratio) ? fmt::format("{:.2f}", ratio) : "-"});
  }
  if (rows.size() > 1) {
    fmt::print("\n{}", aligned_columns(rows));
    fmt::print(
        "\nlaunches of configurations until the best found is within 1 % of the optimum (median of the repeats): all "
        "that were recorded, as many as a median known to 1 % needs, or until a configuration is found slower\n");
  }
  if (without > 0) {
    fmt::print(stderr,
               "--race: left out for {} of {} pairs of space and searcher, as no single launches of these spaces are "
               "recorded\n",
               without, results.size());
  }
}

int run_replay(ReplayCommandOptions options) {
  ReplayOptions& replay_options = options.replay;
  std::sort(replay_options.budgets.begin(), replay_options.budgets.end());
  replay_options.budgets.erase(std::unique(replay_options.budgets.begin(), replay_options.budgets.end()),
                               replay_options.budgets.end());
  if (std::find(replay_options.searchers.begin(), replay_options.searchers.end(), "all") !=
      replay_options.searchers.end()) {
    replay_options.searchers = searcher_list();
  }
  std::set<std::string> named;
  std::erase_if(replay_options.searchers, [&](const std::string& searcher) { return !named.insert(searcher).second; });
  replay_options.score = !options.no_score;
  const std::vector<RecordedSpace> spaces = read_all(options);
  const bool show_progress = ::isatty(STDERR_FILENO) != 0;
  std::size_t done = 0;
  const auto told = [&](const ReplayResult& result) {
    if (show_progress) {
      fmt::print(stderr, "\r\033[K{}/{} {} on {}", ++done, spaces.size() * replay_options.searchers.size(),
                 result.searcher, result.space);
      std::fflush(stderr);
    }
  };
  const std::vector<ReplayResult> results = replay(spaces, replay_options, told, interrupted());
  if (show_progress) {
    fmt::print(stderr, "\r\033[K");
  }
  const std::vector<ReplaySummary> summaries = summarise(results);
  if (options.as_json) {
    fmt::print("{}\n", as_json(results, summaries, options).dump(1));
  } else {
    print_table(results, summaries, replay_options);
    if (replay_options.race) {
      print_sampling(results);
    }
  }
  return interrupted() ? kInterrupted : kSuccess;
}

void add_replay_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("replay", "Run searchers on recorded spaces instead of a device, and compare what they find");
  const auto options = std::make_shared<ReplayCommandOptions>();
  ReplayOptions& replay_options = options->replay;
  replay_options.searchers = {"auto", "random"};
  replay_options.jobs = default_jobs();
  std::vector<std::string> searchers = searcher_list();
  searchers.emplace_back("all");
  command
      ->add_option("FILE", options->files,
                   "Kernel Tuner caches, T4 results, tables (csv), Pascaline databases, or folders of them")
      ->required()
      ->check(CLI::ExistingPath);
  command->add_option("-s,--searcher", replay_options.searchers, "Searchers, or all (several, or comma-separated)")
      ->capture_default_str()
      ->delimiter(',')
      ->check(one_of(searchers));
  command->add_option("-r,--repeats", replay_options.repeats, "Repeats of each, with different seeds")
      ->capture_default_str()
      ->transform(whole_number(1, 100'000));
  command->add_option("-n,--evaluations", replay_options.budgets, "Numbers of evaluations to report")
      ->capture_default_str()
      ->delimiter(',')
      ->transform(whole_number(1, kMaxBudget));
  command->add_option("--seed", replay_options.seed, "Seed of the first repeat")
      ->capture_default_str()
      ->transform(any_unsigned());
  command->add_option("--batch", replay_options.batch, "Proposals in flight at once")
      ->capture_default_str()
      ->transform(whole_number(1, 10'000));
  command->add_option("-j,--jobs", replay_options.jobs, "Threads (default: every processor)")
      ->transform(whole_number(1, 1024));
  command->add_option("-k,--kernel", options->filter.kernel, "Only this kernel of a database");
  command->add_flag("--no-score", options->no_score, "Stop at the last of --evaluations, which is faster");
  command
      ->add_option(
          "--min-gain", replay_options.min_gain,
          "End a repeat where no trial is expected to be faster than the best by this fraction, and only there")
      ->capture_default_str()
      ->check(number_within(0, 1));
  command->add_flag("--race", replay_options.race,
                    "Also: time of launches until within 1 %, with and without dropping configurations that are slower "
                    "(where single launches are recorded)");
  command->add_flag("--json", options->as_json,
                    "Print JSON: searcher, evaluations, geometric mean over the spaces of the median ratio; the same "
                    "for each of `spaces`; quartiles and scores under `details`");
  command->footer(
      "Failed configurations count as evaluations. A repeat ends when the optimum is found, as nothing can change "
      "then, or with --min-gain where a sweep would end.\n\n"
      "Examples:\n"
      "  pascaline replay convolution.json.gz --searcher all --repeats 100\n"
      "  pascaline replay recorded/ --searcher auto,random --no-score --json | jq .auto\n"
      "  pascaline replay convolution.json.gz --searcher auto --no-score --race\n"
      "  pascaline replay ~/.local/share/pascaline/tuned.db --kernel matmul --batch 16");
  command->callback([&action, options] { action = [options] { return run_replay(*options); }; });
}

const Command kReplayCommand(Heading::tune, 12, add_replay_command);

}  // namespace

}  // namespace pascaline::cli
