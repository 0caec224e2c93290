#include "app/sweep/stored_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "app/sweep/plan_options.hpp"
#include "app/sweep/run_status.hpp"
#include "app/sweep/sweep_options.hpp"
#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/shown_text.hpp"
#include "db/store.hpp"
#include "runtime/device/compilers.hpp"
#include "runtime/device/device_names.hpp"

namespace pascaline {
namespace {

// Until when the system's clock can be set, about.
constexpr std::int64_t kLastSecond = 9'000'000'000;
constexpr double kLongestBudgetS = 3e8;  // what `--budget` takes, about
constexpr std::size_t kLongestName = 128;

// What the options take as text without a check of their own, since a user's own words harm nobody.
void check_names(const StoredRun& run) {
  const SweepPlan& plan = run.plan;
  for (const PlannedKernel& kernel : plan.kernels) {
    if (const auto why = why_no_kernel_name(kernel.name)) {
      refuse_run(run, fmt::format("its plan names the kernel '{}', which {}", kernel.name, *why));
    }
  }
  if (plan.kernels.empty()) {
    refuse_run(run, "its plan names no kernel");
  }
  if (!plan.target.empty() && (!is_identifier(plan.target) || plan.target.size() > kLongestName)) {
    refuse_run(run, fmt::format("its plan names the target '{}', which is not an architecture", plan.target));
  }
  if (!plan.nvrtc.empty() && (!is_compiler_wish(plan.nvrtc) || plan.nvrtc.size() > kLongestName)) {
    refuse_run(run, fmt::format("its plan names the NVRTC '{}', which is not a version, several or all", plan.nvrtc));
  }
  for (const std::string& device : plan.devices) {
    if (!is_emulator_name(device) && !cuda_ordinal(device)) {
      refuse_run(run, fmt::format("its plan names the device '{}', which is neither emulator nor cuda:N", device));
    }
  }
  if (plan.budget_s && !(*plan.budget_s >= kShortestBudgetS && *plan.budget_s <= kLongestBudgetS)) {
    refuse_run(run,
               fmt::format("its plan gives it {} seconds (--budget), which is not a valid budget", *plan.budget_s));
  }
  if (plan.until_unix_s && (*plan.until_unix_s < 1 || *plan.until_unix_s > kLastSecond)) {
    refuse_run(run,
               fmt::format("its plan ends at second {} after 1970, which is not a valid date", *plan.until_unix_s));
  }
}

// Of the plan only, so that a fault in it is not taken for one of the command line.
void check_values(const StoredRun& run) {
  CLI::App app;
  SweepCommandOptions unused;
  add_sweep_options(app, unused);
  std::vector<std::string> words;
  for (const auto& option : options_of(run.plan)) {
    words.insert(words.begin(), word_of(option));
  }
  try {
    app.parse(words);
    check_together(unused);
  } catch (const CLI::ParseError& error) {
    refuse_run(run, fmt::format("its plan in the database is not valid: {}", error.what()));
  } catch (const Error& error) {
    refuse_run(run, fmt::format("its plan in the database is not valid: {}", error.what()));
  }
}

}  // namespace

// What is wrong comes out of the database, and a NUL in it would end the message.
void refuse_run(const StoredRun& run, const std::string& why) {
  if (!run.part.empty()) {
    throw Error(fmt::format("cannot run {}: {}", run.part, clean_line(why)));
  }
  throw Error(fmt::format("cannot resume session {}: {}", fmt::join(run.sessions, ", "), clean_line(why)));
}

StoredRun run_to_resume(const std::filesystem::path& database, bool finished_too) {
  const Store store(database, OpenMode::read_only);
  const std::vector<SessionRow> sessions = store.sessions();
  const SessionRow* found = session_to_resume(sessions);
  if (found == nullptr && finished_too) {
    found = session_to_continue(sessions);
  }
  if (found == nullptr) {
    const auto alive =
        std::find_if(sessions.begin(), sessions.end(), [](const SessionRow& session) { return session.alive; });
    if (alive != sessions.end()) {
      throw Error(fmt::format("{}: no sweep to resume; process {} is still running one, `pascaline status` shows it",
                              database.string(), alive->process_id));
    }
    const auto unplanned = std::find_if(sessions.begin(), sessions.end(), [](const SessionRow& session) {
      return session.state != "finished" && session.imported_from.empty();
    });
    if (unplanned != sessions.end()) {
      throw Error(
          fmt::format("{}: session {} did not finish, but its plan is missing; begin the same sweep again without "
                      "--resume: what it measured is not measured again",
                      database.string(), unplanned->id));
    }
    if (std::all_of(sessions.begin(), sessions.end(),
                    [](const SessionRow& session) { return !session.imported_from.empty(); })) {
      throw Error(
          fmt::format("{}: it has no sweep, so there is nothing to resume; leave out --resume to "
                      "begin one",
                      database.string()));
    }
    throw Error(
        fmt::format("{}: every sweep has finished; to continue the last one, give a later end (--resume --until 09:00) "
                    "or a longer --budget, which counts from its beginning, or more --trials",
                    database.string()));
  }
  StoredRun run;
  run.uuid = found->run_uuid;
  for (auto session = sessions.rbegin(); session != sessions.rend(); ++session) {
    if (session->run_uuid == run.uuid && session->imported_from.empty()) {
      run.started_unix_ms = run.sessions.empty() ? session->started_unix_ms : run.started_unix_ms;
      run.sessions.push_back(session->id);
    }
  }
  run.plan = store.plan(run.uuid).value();
  run.shard = shard_of_options(found->options_json);
  check_names(run);
  check_values(run);
  return run;
}

}  // namespace pascaline
