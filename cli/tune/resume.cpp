#include "cli/tune/resume.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "cli/text.hpp"
#include "cli/tune/run_status.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "db/store.hpp"
#include "report/text.hpp"
#include "runtime/device/cuda/nvrtc.hpp"
#include "runtime/device/device_names.hpp"
#include "tuner/sweep/plan_record.hpp"

namespace pascaline::cli {
namespace {

using Words = std::vector<std::pair<std::string, std::string>>;

// Until when the system's clock can be set, about.
constexpr std::int64_t kLastSecond = 9'000'000'000;
constexpr double kLongestBudgetS = 3e8;  // what `--budget` takes, about
constexpr std::size_t kProblemsShown = 3;
constexpr std::size_t kLongestName = 128;
constexpr std::size_t kLongestLabel = 1000;

// What is wrong comes out of the database, and a NUL in it would end the message.
[[noreturn]] void refuse_run(const StoredRun& run, const std::string& why) {
  throw Error(fmt::format("cannot go on with session {}: {}", fmt::join(run.sessions, ", "), clean_line(why)));
}

// The option and what else of the plan it takes the place of.
const std::map<std::string, std::set<std::string>> kReplaces{
    {"--device", {"--devices"}},
    {"--until", {"--until-unix"}},
};
// What every resuming command says anew.
const std::set<std::string> kAnew{"--resume", "--db"};

// CLI11 itself names no hidden ones; every option of `sweep` has a long name.
std::string name_of_option(const CLI::Option& option) { return "--" + option.get_lnames().front(); }

std::set<std::string> given_by(const CLI::App& command) {
  std::set<std::string> names;
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

// The options given, under their long names and one value each, whatever way they were written.
std::vector<std::string> given_words(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = name_of_option(*option);
    if (option->count() == 0 || kAnew.contains(name)) {
      continue;
    }
    std::vector<std::string> values = option->results();
    if (option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeLast ||
        option->get_items_expected_max() == 0) {
      values = {values.back()};
    }
    for (const std::string& value : values) {
      words.push_back(name + "=" + value);
    }
  }
  return words;
}

// The plan as options of `pascaline sweep`. No path is among them, and texts are names that their options check.
Words options_of(const SweepPlan& plan) {
  const auto number = [](double value) { return fmt::format("{}", value); };
  const auto whole = [](std::int64_t value) { return std::to_string(value); };
  Words words{{"--kernel", plan.kernel},
              {"--devices", fmt::format("{}", fmt::join(plan.devices, ","))},
              {"--searcher", plan.searcher},
              {"--seed", whole(static_cast<std::int64_t>(plan.seed))},
              {"--jobs", whole(plan.jobs)},
              {"--compile-timeout", number(plan.compile_timeout_s)},
              {"--compile-memory", whole(plan.compile_memory_mib)},
              {"--kernel-timeout", number(plan.kernel_timeout_s)},
              {"--min-samples", whole(plan.min_samples)},
              {"--max-samples", whole(plan.max_samples)},
              {"--precision", number(plan.half_width)},
              {"--sample-budget-ms", number(plan.sample_budget_ms)},
              {"--abort-factor", number(plan.abort_factor)},
              {"--finalists", whole(plan.finalists)},
              {"--rounds", whole(plan.rounds)},
              {"--preheat", number(plan.preheat_s)},
              {"--drift", number(plan.drift)},
              {"--pause-limit", number(plan.pause_limit_s)}};
  const auto add = [&](bool wanted, const char* option, const std::string& value) {
    if (wanted) {
      words.emplace_back(option, value);
    }
  };
  add(!plan.target.empty(), "--target", plan.target);
  add(!plan.nvrtc.empty(), "--nvrtc", plan.nvrtc);
  add(plan.trials.has_value(), "--trials", whole(plan.trials.value_or(0)));
  add(plan.budget_s.has_value(), "--budget", fmt::format("{:.3f}s", plan.budget_s.value_or(0)));
  add(plan.retry_failed, "--retry-failed", "");
  add(!plan.cold_cache, "--warm-cache", "");
  add(plan.max_temperature_c.has_value(), "--max-temperature", number(plan.max_temperature_c.value_or(0)));
  add(plan.tolerate_power, "--tolerate", "power");
  add(plan.tolerate_thermal, "--tolerate", "thermal");
  return words;
}

std::string word_of(const std::pair<std::string, std::string>& option) {
  return option.second.empty() ? option.first : option.first + "=" + option.second;
}

// What the options take as text without a check of their own, since a user's own words harm nobody.
void check_names(const StoredRun& run) {
  const SweepPlan& plan = run.plan;
  if (const auto why = why_no_kernel_name(plan.kernel)) {
    refuse_run(run, fmt::format("its plan names the kernel '{}', which {}", plan.kernel, *why));
  }
  if (!plan.target.empty() && (!is_identifier(plan.target) || plan.target.size() > kLongestName)) {
    refuse_run(run, fmt::format("its plan names the target '{}', which is no architecture", plan.target));
  }
  if (!plan.nvrtc.empty() && (!is_nvrtc_version(plan.nvrtc) || plan.nvrtc.size() > kLongestName)) {
    refuse_run(run, fmt::format("its plan names the NVRTC '{}', which is no version", plan.nvrtc));
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

std::string options_text(const Words& options) {
  std::string text;
  for (const auto& [option, value] : options) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " ", option, shell_word(clean_line(value)));
  }
  return text;
}

// What the run was begun with and is not in force.
Words paths_missing(const StoredRun& run, const Words& now, const std::set<std::string>& options) {
  Words missing;
  for (const auto& [option, value] : run.plan.paths) {
    const bool same = std::find(now.begin(), now.end(), std::pair(option, value)) != now.end();
    if (options.contains(option) && !same) {
      missing.emplace_back(option, value);
    }
  }
  return missing;
}

std::string asking(const Words& missing) {
  return fmt::format(
      "Pascaline does not open paths stored in a database; give the option{} again if you trust "
      "what is there",
      missing.size() > 1 ? "s" : "");
}

bool is_given(const Words& now, const std::string& option) {
  return std::any_of(now.begin(), now.end(), [&](const auto& given) { return given.first == option; });
}

// Of whole characters: only UTF-8 can be stored.
std::string short_label(const std::string& stored) {
  std::string label = clean_line(stored);
  if (label.size() > kLongestLabel) {
    std::size_t end = kLongestLabel;
    while ((static_cast<unsigned char>(label[end]) & 0xC0U) == 0x80U) {
      --end;
    }
    label.resize(end);
  }
  return label;
}

std::string problem_word(const Problem& problem) {
  std::vector<std::string> settings;
  for (const auto& [name, value] : problem.dimensions) {
    settings.push_back(fmt::format("{}={}", name, value));
  }
  for (const auto& [name, type] : problem.types) {
    settings.push_back(fmt::format("{}={}", name, name_of(type)));
  }
  return fmt::format("{}", fmt::join(settings, ","));
}

}  // namespace

StoredRun run_to_resume(const std::filesystem::path& database) {
  const Store store(database, OpenMode::read_only);
  const std::vector<SessionRow> sessions = store.sessions();
  const SessionRow* found = session_to_resume(sessions);
  if (found == nullptr) {
    const auto alive =
        std::find_if(sessions.begin(), sessions.end(), [](const SessionRow& session) { return session.alive; });
    if (alive != sessions.end()) {
      throw Error(fmt::format("{}: no sweep to go on with; process {} still works on one, `pascaline status` shows it",
                              database.string(), alive->process_id));
    }
    const auto old = std::find_if(sessions.begin(), sessions.end(), [](const SessionRow& session) {
      return session.state != "finished" && session.imported_from.empty();
    });
    if (old != sessions.end()) {
      throw Error(
          fmt::format("{}: session {} did not finish, but the program that began it stored no plan to go on "
                      "with; begin the same sweep again without --resume: what it measured is not measured "
                      "again",
                      database.string(), old->id));
    }
    if (std::all_of(sessions.begin(), sessions.end(),
                    [](const SessionRow& session) { return !session.imported_from.empty(); })) {
      throw Error(
          fmt::format("{}: no sweep was begun in it, so there is nothing to go on with; leave out --resume to "
                      "begin one",
                      database.string()));
    }
    throw Error(fmt::format("{}: every sweep has finished; there is nothing to go on with", database.string()));
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
  check_names(run);
  check_values(run);
  // More would only be in each other's way here, whatever the plan says.
  run.plan.jobs = std::min<std::int64_t>(run.plan.jobs, static_cast<std::int64_t>(default_jobs()));
  return run;
}

SweepCommandOptions resumed_options(const StoredRun& run, const CLI::App& command) {
  const std::set<std::string> given = given_by(command);
  std::vector<std::string> words;
  for (const auto& option : options_of(run.plan)) {
    if (!given.contains(option.first)) {
      words.push_back(word_of(option));
    }
  }
  const std::vector<std::string> own = given_words(command);
  words.insert(words.end(), own.begin(), own.end());
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  CLI::App app;
  SweepCommandOptions options;
  add_sweep_options(app, options);
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    refuse_run(run, error.what());
  }
  options.trials_given = app.count("--trials") > 0;
  if (!given.contains("--until")) {
    options.until_unix_s = run.plan.until_unix_s;
  }
  options.sweep.resume_run = run.uuid;
  if (options.kernel.kernel != run.plan.kernel && options.kernel.problems.empty() && options.workload.empty()) {
    refuse_run(run, fmt::format("its problems are of kernel '{}', not of '{}'; give --problem or --workload, too",
                                run.plan.kernel, options.kernel.kernel));
  }
  return options;
}

std::vector<SweepProblem> resumed_problems(const StoredRun& run, const Space& space) {
  std::vector<SweepProblem> problems;
  for (const PlannedProblem& planned : run.plan.problems) {
    try {
      space.check(planned.problem);
    } catch (const Error& error) {
      refuse_run(run, fmt::format("its plan holds a problem that does not fit {}: {}; give --problem or --workload",
                                  space.file, error.what()));
    }
    if (!std::isfinite(planned.count) || planned.count < 0) {
      refuse_run(run, fmt::format("its plan says that {} is called {} times", planned.problem.text(), planned.count));
    }
    problems.push_back({planned.problem, planned.count, short_label(planned.label)});
  }
  if (problems.empty()) {
    refuse_run(run, "its plan holds no problem; give --problem or --workload");
  }
  return problems;
}

std::vector<std::string> resume_notes(const StoredRun& run, const SweepPlan& now) {
  std::vector<std::string> notes;
  const bool other_kernel = now.kernel != run.plan.kernel;
  const bool other_source = now.source_hash != run.plan.source_hash;
  const bool other_space = now.space_hash != run.plan.space_hash;
  if (!other_kernel && (other_source || other_space)) {
    const std::string what = other_source && other_space ? "source and the search space"
                             : other_source              ? "source"
                                                         : "search space";
    Words missing = paths_missing(run, now.paths, {"--kernels", "--spaces"});
    std::erase_if(missing, [&](const auto& path) { return is_given(now.paths, path.first); });
    if (!missing.empty()) {
      refuse_run(run, fmt::format("the {} of kernel '{}' found here are not those it was begun with, which lay in "
                                  "folders of their own: {}; {}",
                                  what, now.kernel, options_text(missing), asking(missing)));
    }
    notes.push_back(fmt::format(
        "warning: the {} of kernel '{}' changed since the run was begun: {}", what, now.kernel,
        other_source ? "what it measured is kept, but does not count for the new source and is measured anew"
                     : "what it measured still counts, and the search goes on in the new space"));
  }
  if (const Words nvrtc = paths_missing(run, now.paths, {"--nvrtc"});
      !nvrtc.empty() && now.nvrtc.empty() && !is_given(now.paths, "--nvrtc")) {
    refuse_run(run, fmt::format("it was begun with {}, and what it measured does not count for another compiler; {}, "
                                "or give the version of an installed one",
                                options_text(nvrtc), asking(nvrtc)));
  }
  Words missing = paths_missing(run, now.paths, {"--cache", "--log", "--sensors"});
  std::erase_if(missing, [&](const auto& path) { return is_given(now.paths, path.first); });
  if (!missing.empty()) {
    notes.push_back(fmt::format("the run was begun with {}, which is not in force now; {}", options_text(missing),
                                asking(missing)));
  }
  return notes;
}

std::string missing_folders(const StoredRun& run, const CLI::App& command) {
  Words missing = paths_missing(run, {}, {"--kernels", "--spaces"});
  std::erase_if(missing, [&](const auto& path) { return command.count(path.first) > 0; });
  return missing.empty() ? "" : fmt::format("; the run was begun with {}. {}", options_text(missing), asking(missing));
}

std::string resumed_text(const StoredRun& run, const SweepPlan& now) {
  SweepOptions usual_options;
  usual_options.compile_memory_bytes = std::stoull(SweepCommandOptions{}.compile_memory) << 20U;
  const Words standard = options_of(plan_of({}, "", {}, usual_options));
  std::string text = fmt::format("going on with session {}, begun {}: pascaline sweep", fmt::join(run.sessions, ", "),
                                 utc_time(run.started_unix_ms));
  for (const auto& option : options_of(now)) {
    const bool usual = option.first != "--kernel" && option.first != "--devices" && option.first != "--jobs" &&
                       std::find(standard.begin(), standard.end(), option) != standard.end();
    if (!usual) {
      text += " " + option.first + (option.second.empty() ? "" : " " + shell_word(option.second));
    }
  }
  if (now.until_unix_s) {
    text += fmt::format(" --until '{:%Y-%m-%d %H:%M:%S}'", fmt::localtime(static_cast<std::time_t>(*now.until_unix_s)));
  }
  for (std::size_t i = 0; i < std::min(now.problems.size(), kProblemsShown); ++i) {
    text += " --problem " + shell_word(problem_word(now.problems[i].problem));
  }
  if (now.problems.size() > kProblemsShown) {
    text += fmt::format(" (and {} more)", now.problems.size() - kProblemsShown);
  }
  text += now.paths.empty() ? "" : " " + options_text(now.paths);
  return clean_line(text);
}

}  // namespace pascaline::cli
