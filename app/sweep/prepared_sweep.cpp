#include "app/sweep/prepared_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include <nlohmann/json.hpp>

#include "app/sweep/phase_table.hpp"
#include "app/sweep/resume.hpp"
#include "app/sweep/resume_notes.hpp"
#include "app/sweep/sweep_options.hpp"
#include "app/sweep/sweep_settings.hpp"
#include "app/sweep/sweep_shard.hpp"
#include "app/sweep/sweep_work.hpp"
#include "core/error.hpp"
#include "runtime/thermal/sensor_trace.hpp"
#include "tuner/portfolio/portfolio_file.hpp"
#include "tuner/sweep/plan_record.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline {
namespace {

nlohmann::json trial_time_json(const TrialTimes& times) {
  nlohmann::json parts = nlohmann::json::object();
  for_each_part(times, [&](std::string name, double part_ms) {
    std::replace(name.begin(), name.end(), ' ', '_');
    parts[name] = part_ms / 1000;
  });
  return parts;
}

nlohmann::json deepening_json(const DeepeningCounts& counts) {
  return {{"finals", counts.finals},         {"winners_changed", counts.winners_changed},
          {"neighbours", counts.neighbours}, {"neighbours_faster", counts.neighbours_faster},
          {"shapes", counts.shapes},         {"spent_s", counts.spent_s}};
}

SweepWork new_work(SweepCommandOptions& options) {
  set_sweep(options, options.sweep);
  return work_of(options, options.sweep.devices.front());
}

SweepWork resumed_work(SweepCommandOptions& options, const StoredRun& run, const CLI::App& command) {
  set_sweep(options, options.sweep);
  const bool renewed = asks_for_problems(options);
  SweepWork work;
  std::vector<PlannedKernel> kernels;
  try {
    if (renewed) {
      work = work_of(options, options.sweep.devices.front());
    } else {
      for (const std::string& kernel : options.kernels) {
        work.spaces.push_back(options.kernel.load_space(kernel));
      }
    }
    kernels = planned_kernels(options, work.spaces);
  } catch (const Error& error) {
    throw Error(error.what() + missing_folders(run, command), error.code());
  }
  SweepPlan now = plan_of(kernels, work.problems, options.sweep);
  const std::vector<std::string> notes = resume_notes(run, now);
  if (!renewed) {  // after the notes: another space may be why a problem does not fit
    work.problems = resumed_problems(run, work.spaces);
    now = plan_of(kernels, work.problems, options.sweep);
  }
  work.notes.insert(work.notes.begin(), notes.begin(), notes.end());
  work.notes.insert(work.notes.begin(), resumed_text(run, now));
  return work;
}

std::vector<std::string> each_once(const std::vector<std::string>& names) {
  std::vector<std::string> once;
  for (const std::string& name : names) {
    if (std::find(once.begin(), once.end(), name) == once.end()) {
      once.push_back(name);
    }
  }
  return once;
}

void set_portfolios(const SweepCommandOptions& options, SweepWork& work) {
  if (options.portfolio == kNoPortfolio) {
    use_no_portfolio(work.spaces);
  } else if (!options.portfolio.empty()) {
    use_portfolio_file(work.spaces, options.portfolio);
  }
}

}  // namespace

PreparedSweep prepare_sweep(SweepCommandOptions options, const CLI::App& command) {
  options.trials_given = command.count("--trials") > 0;
  options.finalists_given = command.count("--finalists") > 0;
  const std::filesystem::path database = database_path(options.database);
  std::optional<Fleet> fleet;
  if (!options.fleet.empty()) {
    check_together(options);  // the fleet's own options are about nothing that these say
    fleet = load_fleet(options.fleet);
    require_shard_of(*fleet, options);
  }
  std::optional<StoredRun> run;
  if (options.resume) {
    const bool more = command.count("--budget") + command.count("--until") + command.count("--trials") > 0;
    run = run_to_resume(database, more);
    options = resumed_options(*run, fleet ? fleet->options : OptionWords{}, command);
    options.sweep.record.shard = shard_to_resume(*run, options, fleet);
  } else if (fleet) {
    options = fleet_options(*fleet, command);
  }
  options.sweep.database = database;
  options.kernels = each_once(options.kernels);
  check_together(options);
  if (!run && !fleet && command.count("--time-left") > 0 && command.count("--budget") + command.count("--until") == 0) {
    throw UsageError("--time-left says what becomes of the time that is left: give a --budget or --until with it");
  }
  if (!options.sweep.files.sensors.empty()) {
    std::ignore = SensorTrace::load(options.sweep.files.sensors);  // each device's process reads it again
  }
  SweepWork work = run ? resumed_work(options, *run, command) : fleet ? fleet_work(*fleet, options) : new_work(options);
  give_contents(work, options.kernel.given(), run && !asks_for_problems(options));
  if (fleet) {
    require_same_kernels(*fleet, planned_kernels(options, work.spaces));
  } else if (!options.shard.empty() && (!run || asks_for_problems(options))) {
    add_shapes_between(work, options.sweep);  // of the whole plan, and then divided as it is
    keep_shard(work, options.sweep, parse_shard(options.shard));
  }
  if (!options.sweep.record.shard) {
    add_shapes_between(work, options.sweep);
  }
  require_sensors_of_objective(options.sweep,
                               fleet ? "plan the fleet without --objective, or leave this machine out of it"
                               : run ? "give --resume --objective time, or the --sensors that it was begun with, if any"
                                     : "leave --objective out");
  set_portfolios(options, work);
  return {std::move(options), std::move(work)};
}

nlohmann::json summary_document(const SweepSummary& summary, const PreparedSweep& sweep) {
  nlohmann::json problems = nlohmann::json::array();
  for (const SweepProblem& wanted : sweep.work.problems) {
    problems.push_back(wanted.problem.text());
  }
  nlohmann::json document{
      {"session", summary.session},
      {"run", summary.run},
      {"database", sweep.options.sweep.database.string()},
      {"problems", problems},
      {"reused", summary.reused},
      {"reused_ok", summary.reused_ok},
      {"problems_done", summary.problems.done},
      {"problems_exhausted", summary.problems.exhausted},
      {"not_reached", summary.problems.not_reached},
      {"left_out", summary.problems.left_out},
      {"doubts", summary.problems.doubts},
      {"problems_decided", summary.problems.decided},
      {"phases", phases_json(summary.phases)},
      {"models", models_json(summary.models)},
      {"forecasts", forecasts_json(summary.forecast.too_short)},
      {"missing_s", summary.forecast.missing_s ? nlohmann::json(*summary.forecast.missing_s) : nlohmann::json()},
      {"expected_s", summary.forecast.expected_s ? nlohmann::json(*summary.forecast.expected_s) : nlohmann::json()},
      {"deepening", deepening_json(summary.deepening)},
      {"restarts", summary.restarts},
      {"wall_s", summary.times.wall_s},
      {"measuring_s", summary.times.busy_s},
      {"opening_s", summary.times.opening_s},
      {"preparing_s", summary.times.preparing_s},
      {"finals_s", summary.times.finals_s},
      {"waiting_for_cards_s", summary.times.waited_s},
      {"paused_s", summary.times.paused_s},
      {"compiling_s", summary.times.compile_s},
      {"trial_time_s", trial_time_json(summary.times.trials)},
      {"end_reason", summary.end.reason},
      {"interrupted", summary.interrupted}};
  for_each_count(summary, [&](const TrialCount& count, std::int64_t number) { document[count.name] = number; });
  return document;
}

}  // namespace pascaline
