#include "tuner/cli/resume.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/paths.hpp"
#include "db/store.hpp"

namespace pascaline::cli {
namespace {

// The newest run that did not finish and that no process works on.
SessionRow find_run(const std::filesystem::path& database) {
  std::vector<SessionRow> sessions = Store(database, OpenMode::read_only).sessions();
  for (const SessionRow& session : sessions) {
    const bool of_living_run = std::any_of(sessions.begin(), sessions.end(), [&](const SessionRow& other) {
      return other.run_uuid == session.run_uuid && other.alive;
    });
    if (session.state != "finished" && !of_living_run && !session.arguments.empty()) {
      return session;
    }
    if (of_living_run) {
      throw Error(fmt::format("{}: process {} still works on the last sweep; `pascaline status` shows it",
                              database.string(), session.process_id));
    }
    if (session.state == "finished") {
      break;  // going on with what came before the last finished sweep is nobody's wish
    }
  }
  throw Error(fmt::format("{}: the last sweep has finished; there is nothing to go on with", database.string()));
}

}  // namespace

std::vector<std::string> own_words() {
  const std::string text = read_file("/proc/self/cmdline");  // each ends with a zero byte
  std::vector<std::string> words;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\0', start), text.size());
    words.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  words.erase(words.begin());
  return words;
}

void resume_run(const std::filesystem::path& database) {
  const std::filesystem::path absolute = std::filesystem::absolute(database);
  const SessionRow session = find_run(absolute);
  std::vector<std::string> own = own_words();
  own.erase(own.begin());  // "sweep"
  std::erase(own, "--resume");
  const bool new_until =
      std::any_of(own.begin(), own.end(), [](const std::string& word) { return word.starts_with("--until"); });
  std::vector<std::string> words{"pascaline"};
  for (auto word = session.arguments.begin(); word != session.arguments.end(); ++word) {
    const bool replaced = *word == "--resume-run" || (new_until && *word == "--until-unix");
    if (replaced && word + 1 != session.arguments.end()) {
      ++word;
    } else if (*word != "--resume") {
      words.push_back(*word);
    }
  }
  words.insert(words.end(), own.begin(), own.end());
  words.insert(words.end(), {"--resume-run", session.run_uuid, "--db", absolute.string()});
  const auto folder = nlohmann::json::parse(session.options_json, nullptr, false).value("folder", std::string("."));
  if (::chdir(folder.c_str()) != 0) {
    throw Error(fmt::format("cannot go on in {}, where the sweep was begun: {}", folder, std::strerror(errno)), errno);
  }
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
