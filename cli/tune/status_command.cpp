#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include <nlohmann/json.hpp>

#include "app/sweep/run_status.hpp"
#include "cli/command.hpp"
#include "cli/tune/live_view.hpp"

namespace pascaline::cli {
namespace {

constexpr std::chrono::seconds kWatchInterval{1};

struct StatusCommandOptions {
  std::string database;
  bool as_json = false;
  bool watch = false;
};

// Prints how things stand; whether anything runs.
bool show_once(const Store& store, const StatusCommandOptions& options) {
  const std::vector<SessionRow> sessions = store.sessions();
  const std::vector<Run> runs = runs_of(sessions);
  if (options.as_json) {
    fmt::print("{}\n", status_json(store, sessions).dump(options.watch ? -1 : 2));
  } else if (runs.empty()) {
    fmt::print("{}\n", idle_text(store, sessions));
  } else {
    for (const Run& run : runs) {
      fmt::print("{}\n{}\n", heading(run), fmt::join(view_lines(run.view), "\n"));
    }
  }
  return !runs.empty();
}

// Of several runs the totals are those of the one begun last; nearly always there is only one.
SweepView together(const std::vector<Run>& runs) {
  SweepView view = runs.back().view;
  view.devices.clear();
  for (const Run& run : runs) {
    view.devices.insert(view.devices.end(), run.view.devices.begin(), run.view.devices.end());
  }
  return view;
}

// What stays on the screen: which sweeps there are, or that there is none.
std::string lasting_text(const Store& store, const std::vector<SessionRow>& sessions, const std::vector<Run>& runs) {
  std::string text = runs.empty() ? idle_text(store, sessions) : "";
  for (const Run& run : runs) {
    text += (text.empty() ? "" : "\n") + heading(run);
  }
  return text;
}

void show_again(const Store& store, LiveView& live, std::string& said) {
  const std::vector<SessionRow> sessions = store.sessions();
  const std::vector<Run> runs = runs_of(sessions);
  if (runs.empty()) {
    live.finish();
  }
  std::string text = lasting_text(store, sessions, runs);
  if (text != said) {
    live.line(text);
    said = std::move(text);
  }
  if (!runs.empty()) {
    live.update(together(runs));
  }
}

void pause_unless_interrupted() {
  const auto end = std::chrono::steady_clock::now() + kWatchInterval;
  while (!interrupted() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

int watch(const Store& store, const StatusCommandOptions& options) {
  catch_interrupts();
  LiveView live({.terminal = ::isatty(STDOUT_FILENO) != 0});
  std::string said;
  while (!interrupted()) {
    if (options.as_json) {
      show_once(store, options);
      std::fflush(stdout);
    } else {
      show_again(store, live, said);
    }
    pause_unless_interrupted();
  }
  return kInterrupted;
}

int status(const StatusCommandOptions& options) {
  const Store store(database_path(options.database), OpenMode::read_only);
  if (options.watch) {
    return watch(store, options);
  }
  return show_once(store, options) ? kSuccess : kNegative;
}

void add_status_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("status", "Show what the sweeps on a database are doing");
  const auto options = std::make_shared<StatusCommandOptions>();
  add_database_option(*command, options->database, "Database to read");
  command->add_flag("--json", options->as_json, "Print JSON; with --watch a line each second");
  command->add_flag("--watch", options->watch, "Keep showing it until Ctrl-C");
  command->footer(
      "Exit codes: 0 a sweep is running; 3 none is; 1 there is no such database.\n\n"
      "Examples:\n  pascaline status\n  pascaline status --watch\n  pascaline status --db tuned.db --json");
  command->callback([&action, options] { action = [options] { return status(*options); }; });
}

const Command kStatusCommand(Heading::tune, 5, add_status_command);

}  // namespace

}  // namespace pascaline::cli
