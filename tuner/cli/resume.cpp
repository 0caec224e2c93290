#include "tuner/cli/resume.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "db/store.hpp"
#include "report/text.hpp"
#include "tuner/cli/command.hpp"
#include "tuner/cli/run_status.hpp"

namespace pascaline::cli {
namespace {

SessionRow find_run(const std::filesystem::path& database) {
  const std::vector<SessionRow> sessions = Store(database, OpenMode::read_only).sessions();
  if (const SessionRow* found = session_to_resume(sessions)) {
    return *found;
  }
  const auto alive =
      std::find_if(sessions.begin(), sessions.end(), [](const SessionRow& session) { return session.alive; });
  if (alive != sessions.end()) {
    throw Error(fmt::format("{}: no sweep to go on with; process {} still works on one, `pascaline status` shows it",
                            database.string(), alive->process_id));
  }
  throw Error(fmt::format("{}: every sweep has finished; there is nothing to go on with", database.string()));
}

// Option, and what else of the run it takes the place of.
const std::map<std::string, std::set<std::string>> kReplaces{
    {"--device", {"--devices"}},   {"--devices", {"--device"}},
    {"--until", {"--until-unix"}}, {"--problem", {"--workload", "--phase", "--type", "--symbol"}},
    {"--workload", {"--problem"}},
};
// What every resuming command says anew.
const std::set<std::string> kAnew{"--resume", "--resume-run", "--db"};

// CLI11 itself names no hidden ones; every option of `sweep` has a long name.
std::string name_of_option(const CLI::Option& option) { return "--" + option.get_lnames().front(); }

std::set<std::string> replaced_by(const CLI::App& command) {
  std::set<std::string> names = kAnew;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() > 0) {
      names.insert(name_of_option(*option));
      if (const auto others = kReplaces.find(name_of_option(*option)); others != kReplaces.end()) {
        names.insert(others->second.begin(), others->second.end());
      }
    }
  }
  return names;
}

// Appends the options given, under their long names and one value each, whatever way they were written.
void append_given(const CLI::App& command, const std::set<std::string>& without, std::vector<std::string>& words) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = name_of_option(*option);
    if (option->count() == 0 || without.contains(name)) {
      continue;
    }
    std::vector<std::string> values = option->results();
    if (option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeLast ||
        option->get_items_expected_max() == 0) {
      values = {values.back()};
    }
    for (const std::string& value : values) {
      if (option->get_items_expected_max() == 0 && value == "true") {  // a flag
        words.push_back(name);
      } else if (value.empty() || value.front() == '-' || option->get_items_expected_max() == 0) {
        words.push_back(name + "=" + value);
      } else {
        words.insert(words.end(), {name, value});
      }
    }
  }
}

// The run's words that still count. To be called in its folder, as files are looked for.
void append_stored(const SessionRow& session, const std::set<std::string>& without, std::vector<std::string>& words) {
  CLI::App app;
  Action none;
  add_sweep_command(app, none);
  try {
    app.parse(std::vector<std::string>(session.arguments.rbegin(), session.arguments.rend()));
  } catch (const CLI::ParseError& error) {
    throw Error(fmt::format("cannot go on with session {}: {}", session.id, error.what()));
  }
  append_given(*app.get_subcommand("sweep"), without, words);
}

void enter_folder(const SessionRow& session) {
  const auto folder = nlohmann::json::parse(session.options_json, nullptr, false).value("folder", std::string("."));
  if (::chdir(folder.c_str()) != 0) {
    throw Error(fmt::format("cannot go on in {}, where the sweep was begun: {}", folder, std::strerror(errno)), errno);
  }
}

}  // namespace

std::string resumed_text(const std::filesystem::path& database, const std::string& run) {
  std::vector<SessionRow> sessions = Store(database, OpenMode::read_only).sessions();
  std::erase_if(sessions,
                [&](const SessionRow& session) { return session.run_uuid != run || !session.imported_from.empty(); });
  if (sessions.empty()) {
    throw Error(fmt::format("{} holds no run {} to go on with", database.string(), run));
  }
  std::vector<std::int64_t> ids;
  for (auto session = sessions.rbegin(); session != sessions.rend(); ++session) {
    ids.push_back(session->id);
  }
  return fmt::format("going on with session {}, begun {}: {}", fmt::join(ids, ", "),
                     utc_time(sessions.back().started_unix_ms), clean_line(sessions.back().command_line));
}

void resume_run(const std::filesystem::path& database, const CLI::App& command) {
  const std::filesystem::path absolute = std::filesystem::absolute(database);
  const SessionRow session = find_run(absolute);
  enter_folder(session);
  std::vector<std::string> words{"pascaline", "sweep"};
  append_stored(session, replaced_by(command), words);
  append_given(command, kAnew, words);
  words.insert(words.end(), {"--resume-run", session.run_uuid, "--db", absolute.string()});
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  std::fflush(stdout);
  ::execv("/proc/self/exe", arguments.data());
  throw Error(fmt::format("cannot start again: {}", std::strerror(errno)), errno);
}

}  // namespace pascaline::cli
