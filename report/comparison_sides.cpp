#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/argument_error.hpp"
#include "report/comparison.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kShortestPrefix = 4;
constexpr std::size_t kNamedSessions = 5;

// The word's beginning is the id's own in either case of its letters.
bool is_prefix_of(std::string_view word, std::string_view uuid) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == std::tolower(b); };
  return word.size() >= kShortestPrefix && word.size() <= uuid.size() &&
         std::equal(word.begin(), word.end(), uuid.begin(), same);
}

std::string listed(const std::vector<SessionRow>& sessions) {
  std::string text;
  for (std::size_t i = 0; i < std::min(sessions.size(), kNamedSessions); ++i) {
    const SessionRow& session = sessions[i];
    text += fmt::format("{}{} (begun {}, uuid {})", i == 0 ? "" : ", ", session.id, utc_time(session.started_unix_ms),
                        session.uuid.substr(0, 8));
  }
  if (sessions.size() > kNamedSessions) {
    text += fmt::format(" and {} more, which `pascaline show sessions` lists", sessions.size() - kNamedSessions);
  }
  return text;
}

std::vector<SessionRow> matches_of(const std::vector<SessionRow>& sessions, const std::string& word) {
  std::vector<SessionRow> by_uuid;
  std::vector<SessionRow> by_run;
  for (const SessionRow& session : sessions) {
    if (std::to_string(session.id) == word) {
      return {session};
    }
    if (is_prefix_of(word, session.uuid)) {
      by_uuid.push_back(session);
    }
    if (is_prefix_of(word, session.run_uuid)) {
      by_run.push_back(session);
    }
  }
  const bool one_run = std::all_of(by_run.begin(), by_run.end(), [&](const SessionRow& session) {
    return session.run_uuid == by_run.front().run_uuid;
  });
  if (by_uuid.size() == 1 && by_run.empty()) {
    return by_uuid;
  }
  if (by_uuid.empty() && one_run) {
    return by_run;
  }
  by_uuid.insert(by_uuid.end(), by_run.begin(), by_run.end());
  throw ArgumentError(fmt::format("'{}' begins several uuids: those of the sessions {}; give more of it, or an id",
                                  word, listed(by_uuid)));
}

}  // namespace

std::string side_label(const Side& side) {
  std::string file = side.store->file().filename().string();
  if (side.sessions.empty()) {
    return file;
  }
  std::string ids;
  for (std::size_t i = 0; i < side.sessions.size(); ++i) {
    ids += i == 0 ? "" : i + 1 == side.sessions.size() ? " and " : ", ";
    ids += std::to_string(side.sessions[i]);
  }
  return fmt::format("session{} {} of {}", side.sessions.size() == 1 ? "" : "s", ids, file);
}

std::vector<std::int64_t> find_sessions(const Store& store, const std::string& word) {
  const std::vector<SessionRow> sessions = store.sessions();
  std::vector<std::int64_t> ids;
  for (const SessionRow& session : matches_of(sessions, word)) {
    ids.push_back(session.id);
  }
  if (ids.empty()) {
    const std::string there_are = sessions.empty() ? "it has none" : "it has " + listed(sessions);
    throw ArgumentError(fmt::format("{} has no session '{}'; {}", store.file().string(), word, there_are));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace pascaline
