#include "app/sweep/run_status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/text.hpp"
#include "db/overview.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLastSessions = 5;

double seconds_since(std::int64_t unix_ms) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return std::max(0.0, now.count() - static_cast<double>(unix_ms) / 1000);
}

// A session that has noted nothing yet has just begun.
SweepView view_of(const SessionRow& session) {
  if (auto view = read_session_progress(session.progress)) {
    return *view;
  }
  SweepView view;
  view.devices.emplace_back().name = session.device.name;
  view.elapsed_s = seconds_since(session.started_unix_ms);
  return view;
}

// Problems that the sweep had no time for, once it has ended.
std::vector<std::string> not_reached(const SessionRow& session) {
  const auto view = read_session_progress(session.progress);
  return view && session.state == "finished" ? view->not_reached : std::vector<std::string>();
}

std::string state_of(const SessionRow& session) {
  return session.state == "running" && !session.alive ? "died" : session.state;
}

// Every session of a run notes the totals of all; those noted last count.
void add_device(Run& run, const SessionRow& session) {
  SweepView view = view_of(session);
  std::vector<DeviceProgress> devices = std::move(run.view.devices);
  devices.insert(devices.end(), view.devices.begin(), view.devices.end());
  if (run.sessions.empty() || view.elapsed_s > run.view.elapsed_s) {
    run.view = std::move(view);
  }
  run.view.devices = std::move(devices);
  run.sessions.push_back(session.id);
}

std::span<const SessionRow> last_of(const std::vector<SessionRow>& newest_first) {
  return std::span(newest_first).first(std::min(newest_first.size(), kLastSessions));
}

}  // namespace

std::vector<Run> runs_of(const std::vector<SessionRow>& newest_first) {
  std::vector<Run> runs;
  for (auto session = newest_first.rbegin(); session != newest_first.rend(); ++session) {
    if (!session->alive) {
      continue;
    }
    auto run =
        std::find_if(runs.begin(), runs.end(), [&](const Run& known) { return known.uuid == session->run_uuid; });
    if (run == runs.end()) {
      run = runs.insert(
          runs.end(),
          {session->run_uuid, session->process_id, session->started_unix_ms, session->command_line, {}, {}});
    }
    add_device(*run, *session);
  }
  return runs;
}

const SessionRow* session_to_resume(const std::vector<SessionRow>& newest_first) {
  const auto wanted = std::find_if(newest_first.begin(), newest_first.end(), [&](const SessionRow& session) {
    const bool under_way = std::any_of(newest_first.begin(), newest_first.end(), [&](const SessionRow& other) {
      return other.alive && other.run_uuid == session.run_uuid;
    });
    return session.state != "finished" && session.has_plan && session.imported_from.empty() && !under_way;
  });
  return wanted == newest_first.end() ? nullptr : &*wanted;
}

const SessionRow* session_to_continue(const std::vector<SessionRow>& newest_first) {
  const auto wanted = std::find_if(newest_first.begin(), newest_first.end(), [](const SessionRow& session) {
    return session.alive || (session.has_plan && session.imported_from.empty());
  });
  return wanted == newest_first.end() || wanted->alive ? nullptr : &*wanted;
}

std::string heading(const Run& run) {
  const std::string process = run.process_id > 0 ? fmt::format(", process {}", run.process_id) : "";
  return fmt::format("running since {}{}, session {}: {}", utc_time(run.started_unix_ms), process,
                     fmt::join(run.sessions, ", "), clean_line(run.command_line));
}

std::string idle_text(const Store& store, const std::vector<SessionRow>& sessions) {
  const std::string database = store.file().string();
  std::map<std::int64_t, TrialCounts> counts = counts_by_session(store);
  std::string text = fmt::format("nothing is running on {}\n", database);
  for (const SessionRow& session : last_of(sessions)) {
    const std::string end = session.finished_unix_ms ? " to " + utc_time(*session.finished_unix_ms) : "";
    text += fmt::format("  session {}: {}{}, {}, {}; {}\n", session.id, utc_time(session.started_unix_ms), end,
                        state_of(session), clean_line(session.device.name), counts_text(counts[session.id]));
    if (const std::vector<std::string> missed = not_reached(session); !missed.empty()) {
      text += "    " + not_reached_text(missed) + "\n";
    }
    if (const auto view = read_session_progress(session.progress); view && !view->no_time.empty()) {
      text += "    " + no_time_text(view->no_time) + "\n";
    }
    if (const auto view = read_session_progress(session.progress); view && !view->provisional.empty()) {
      text += "    " + provisional_text(view->provisional) + "\n";
    }
  }
  return text + (sessions.empty()                         ? "no sweep has been started yet: pascaline sweep --help"
                 : session_to_resume(sessions) != nullptr ? "to resume: " + resume_command(database)
                                                          : "to tune more: pascaline sweep --help");
}

Json status_json(const Store& store, const std::vector<SessionRow>& sessions) {
  const std::string database = store.file().string();
  std::map<std::int64_t, TrialCounts> counts = counts_by_session(store);
  Json running = Json::array();
  for (const Run& run : runs_of(sessions)) {
    running.push_back({{"run", clean_line(run.uuid)},
                       {"process_id", run.process_id > 0 ? Json(run.process_id) : Json()},
                       {"started", utc_time(run.started_unix_ms)},
                       {"command_line", clean_line(run.command_line)},
                       {"sessions", run.sessions},
                       {"view", run.view}});
  }
  Json last = Json::array();
  for (const SessionRow& session : last_of(sessions)) {
    const auto finished = session.finished_unix_ms;
    last.push_back({{"session", session.id},
                    {"started", utc_time(session.started_unix_ms)},
                    {"finished", finished ? Json(utc_time(*finished)) : Json()},
                    {"state", state_of(session)},
                    {"not_reached", not_reached(session)},
                    {"device", clean_line(session.device.name)}});
    for_each_count(counts[session.id],
                   [&](const TrialCount& count, std::int64_t number) { last.back()[count.name] = number; });
  }
  return {{"database", database},
          {"running", std::move(running)},
          {"last", std::move(last)},
          {"resume", session_to_resume(sessions) != nullptr ? Json(resume_command(database)) : Json()}};
}

}  // namespace pascaline
