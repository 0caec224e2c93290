#include <fmt/format.h>

#include <cstdio>

#include <nlohmann/json.hpp>

#include "app/data/known_names.hpp"
#include "cli/command.hpp"
#include "core/error.hpp"
#include "core/util/suggestion.hpp"
#include "report/show.hpp"

namespace pascaline::cli {
namespace {

constexpr std::string_view kAllObjectives = "all";

struct ShowCommandOptions {
  std::string what = "winners";
  std::string database;
  std::string kernel;
  std::string problem;
  std::string status;
  std::int64_t session = 0;
  std::size_t limit = 20;
  std::string objective{name_of(Objective::time)};
  bool pareto = false;
  bool as_json = false;
};

std::string unknown_status_text(const std::string& status) {
  const std::vector<std::string> known(trial_status_names().begin(), trial_status_names().end());
  return fmt::format("there is no status '{}'{}; it is one of {}", status, did_you_mean(status, known),
                     fmt::join(known, ", "));
}

// What is shown otherwise than asked for would mislead.
void refuse_ignored(const ShowCommandOptions& options, bool objective_given) {
  const bool winners = options.what == "winners";
  if (objective_given && (!winners || options.pareto)) {
    throw UsageError(fmt::format("--objective is of no use with {}: it is about winners",
                                 options.pareto ? "--pareto" : "show " + options.what));
  }
  if (options.pareto && (!winners || !options.status.empty() || options.session > 0)) {
    throw UsageError(fmt::format("--pareto is of no use with {}: it shows shapes", !winners ? "show " + options.what
                                                                                   : options.session > 0 ? "--session"
                                                                                                         : "--status"));
  }
}

int show(const ShowCommandOptions& options) {
  ShowOptions wanted;
  wanted.what = options.what == "sessions" ? ShowWhat::sessions
                : options.what == "trials" ? ShowWhat::trials
                                           : ShowWhat::winners;
  if (options.pareto) {
    wanted.what = ShowWhat::pareto;
  }
  wanted.objective = options.objective == kAllObjectives ? std::nullopt : objective_from(options.objective);
  wanted.limit = options.limit;
  wanted.filter.kernel = options.kernel;
  if (!options.status.empty()) {
    wanted.filter.status = trial_status_from(options.status);
    if (!wanted.filter.status) {
      throw UsageError(unknown_status_text(options.status));
    }
  }
  if (options.session > 0) {
    wanted.filter.session_id = options.session;
  }
  require_kernel_of(options.problem, options.kernel);
  const Store store(database_path(options.database), OpenMode::read_only);
  require_known_kernel(store, options.kernel);
  wanted.filter.problem = stored_problem(store, options.kernel, options.problem);
  if (options.as_json) {
    fmt::print("{}\n", show_json(store, wanted).dump(2));
  } else {
    fmt::print("{}", show_text(store, wanted));
  }
  if (const std::size_t all = wanted.limit > 0 ? count_shown(store, wanted) : 0; all > wanted.limit) {
    std::fflush(stdout);
    fmt::print(stderr, "pascaline: note: {} of {} {}; --limit 0 shows all\n", wanted.limit, all,
               options.pareto ? "shapes" : options.what);
  }
  return kSuccess;
}

void add_show_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("show", "List a database's winners, trials or sessions");
  const auto options = std::make_shared<ShowCommandOptions>();
  command->add_option("what", options->what, "winners, trials or sessions")
      ->capture_default_str()
      ->check(one_of({"winners", "trials", "sessions"}));
  add_database_option(*command, options->database, "Database to read");
  command->add_option("-k,--kernel", options->kernel, "Only this kernel");
  command->add_option("-p,--problem", options->problem,
                      "Only this shape, e.g. M=512,N=2048: as much of it as tells it from the others stored");
  command->add_option("--status", options->status,
                      fmt::format("Only trials with this status: {}", fmt::join(trial_status_names(), ", ")));
  command->add_option("--session", options->session, "Only this session")->transform(whole_number(0));
  std::vector<std::string> objectives{std::string(kAllObjectives)};
  for (const Objective objective : kObjectives) {
    objectives.emplace_back(name_of(objective));
  }
  command->add_option("--objective", options->objective, "Winners by this objective (sweep --objective), or all")
      ->capture_default_str()
      ->check(one_of(std::move(objectives)));
  command->add_flag("--pareto", options->pareto,
                    "Of each shape the configurations whose time and energy are both known, and which of them no other "
                    "one beats in both");
  command
      ->add_option("-n,--limit", options->limit,
                   "Rows at most, with --pareto shapes; 0: all (default: 20, with --json all)")
      ->transform(whole_number(0));
  command->add_flag("--json", options->as_json, "Print JSON");
  command->footer(
      "What was measured of devices themselves is shown by pascaline probe --show.\n\n"
      "Examples:\n  pascaline show\n  pascaline show trials --kernel matmul --limit 10\n"
      "  pascaline show trials --status wrong_result --json\n  pascaline show sessions --db tuned.db\n"
      "  pascaline show --pareto --kernel matmul");
  command->callback([&action, options, command] {
    const bool objective_given = command->count("--objective") > 0;
    if (options->as_json && command->count("--limit") == 0) {
      options->limit = 0;  // a program would take a part for the whole
    }
    action = [options, objective_given] {
      refuse_ignored(*options, objective_given);
      return show(*options);
    };
  });
}

const Command kShowCommand(Heading::data, 1, add_show_command);

}  // namespace

}  // namespace pascaline::cli
