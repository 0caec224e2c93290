#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "app/sweep/plan_options.hpp"
#include "app/sweep/sweep_options.hpp"
#include "app/sweep/sweep_settings.hpp"
#include "app/sweep/sweep_shard.hpp"
#include "app/sweep/sweep_work.hpp"
#include "app/text.hpp"
#include "cli/command.hpp"
#include "cli/fleet/fleet_commands.hpp"
#include "cli/output_folder.hpp"
#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "core/util/duration.hpp"
#include "core/util/paths.hpp"
#include "core/version.hpp"
#include "tuner/fleet/partition.hpp"
#include "tuner/sweep/plan_record.hpp"

namespace pascaline::cli {
namespace {

struct FleetPlanOptions {
  SweepCommandOptions sweep;
  std::string folder;
  int shards = 0;
};

// What each process of a fleet says for itself, or what makes no sense for one.
constexpr const char* kNotOfFleets[] = {"--db",   "--resume", "--shard",   "--fleet", "--log",   "--quiet",
                                        "--json", "--until",  "--devices", "--input", "--answer"};

// A login node often has no GPU: what the shards run on is theirs to have.
std::vector<std::pair<std::string, std::string>> shard_options(const SweepPlan& plan, const SweepCommandOptions& given,
                                                               bool jobs_given) {
  std::vector<std::pair<std::string, std::string>> options = options_of(plan);
  std::erase_if(options, [&](const auto& option) {
    return option.first == "--devices" || (option.first == "--jobs" && !jobs_given);
  });
  options.emplace_back("--devices", given.device.device.empty() ? "cuda:0" : given.device.device);
  return options;
}

// Those that a file may give are options of the plan, the others are kept to be shown.
void add_paths(const SweepCommandOptions& given, Fleet& fleet) {
  for (const auto& path : paths_of(given)) {
    (why_no_file_option(path.first, path.second) ? fleet.paths : fleet.options).push_back(path);
  }
}

// "12", or "12 (of one 1/2 of its space)" where it shares one with other shards.
std::string problems_text(const FleetShard& shard, std::ptrdiff_t count) {
  std::vector<std::string> parts;
  for (const PlannedProblem& problem : shard.problems) {
    if (!problem.part.is_whole()) {
      parts.push_back(problem.part.text());
    }
  }
  if (parts.empty()) {
    return std::to_string(count);
  }
  return fmt::format("{} ({}{} of {})", count,
                     count == 1          ? ""
                     : parts.size() == 1 ? "of one "
                                         : "of some ",
                     fmt::join(parts, ", "), parts.size() == 1 ? "its space" : "their spaces");
}

void print_plan(const Fleet& fleet, const std::string& folder, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    fmt::print("{}\n", note);
  }
  std::vector<std::vector<std::string>> rows{{"shard", "problems", "in between", "expected", "at most"}};
  for (int shard = 1; shard <= fleet.count(); ++shard) {
    const FleetShard& part = fleet.shards[static_cast<std::size_t>(shard - 1)];
    const auto between =
        std::ranges::count_if(part.problems, [](const PlannedProblem& problem) { return problem.count == 0; });
    const auto problems = static_cast<std::ptrdiff_t>(part.problems.size()) - between;
    rows.push_back({std::to_string(shard), problems_text(part, problems), std::to_string(between),
                    duration_text(part.expected_s), fleet.budget_s > 0 ? duration_text(fleet.budget_s) : "-"});
  }
  fmt::print("{}\nfleet {} in {}; next: {} --slurm{}; or on each machine: {}\n", aligned_columns(rows), fleet.id,
             folder, fleet_words("submit", folder, fleet.paths), fleet.paths.empty() ? ", or --ssh HOSTS" : "",
             fleet_words("run", folder, fleet.paths));
}

int plan(FleetPlanOptions options, bool jobs_given) {
  options.folder = std::filesystem::absolute(options.folder).lexically_normal().string();
  std::error_code unseen;
  if (std::filesystem::exists(fleet_file(options.folder), unseen)) {
    throw Error(fmt::format("{} has a fleet already; give another folder, as its shards' results belong to its plan",
                            options.folder));
  }
  SweepCommandOptions& given = options.sweep;
  check_together(given);
  set_sweep(given, given.sweep);
  SweepWork work = work_of(given, given.sweep.devices.front());
  give_contents(work, {}, false);
  add_shapes_between(work, given.sweep);
  leave_sites_out(work);
  const DividedWork divided = divide(work.problems, work.spaces, given.sweep, options.shards);
  Fleet fleet;
  fleet.id = divided.fleet;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  fleet.planned_unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  fleet.program = kVersion;
  fleet.budget_s = given.sweep.budget_s.value_or(0);
  const SweepPlan whole = plan_of(planned_kernels(given, work.spaces), work.problems, given.sweep);
  fleet.kernels = whole.kernels;
  fleet.options = shard_options(whole, given, jobs_given);
  std::erase_if(fleet.options, [](const auto& option) { return option.first == "--kernel"; });
  add_paths(given, fleet);
  for (std::size_t shard = 0; shard < divided.shards.size(); ++shard) {
    fleet.shards.push_back({divided.expected_s[shard], plan_of({}, divided.shards[shard], given.sweep).problems});
  }
  make_output_folder(options.folder, "give another folder for the fleet");
  replace_file(fleet_file(options.folder), fleet_text(fleet));
  print_plan(fleet, options.folder, work.notes);
  return kSuccess;
}

}  // namespace

void add_fleet_plan_command(CLI::App& fleet, Action& action) {
  CLI::App* command = fleet.add_subcommand("plan", "Divide a sweep into shards and write the plan into a folder");
  const auto options = std::make_shared<FleetPlanOptions>();
  add_fleet_folder(*command, options->folder);
  command
      ->add_option("--shards", options->shards,
                   "How many: one for each card, or more, to be given out as cards get free")
      ->required()
      ->transform(whole_number(1, kMaxFleetShards));
  add_sweep_options(*command, options->sweep);
  for (const char* const option : kNotOfFleets) {
    command->remove_option(command->get_option(option));
  }
  command->footer(
      "Options are those of `pascaline sweep`; --budget is for each card. Problems are divided by their expected "
      "cost,\n"
      "the largest first. Without --device each shard is for the first GPU that its process sees.\n\nExamples:\n"
      "  pascaline fleet plan night --shards 4 --workload model.json --budget 8h\n"
      "  pascaline fleet plan night --shards 8 --model Qwen3-VL-2B-Instruct --trials 200");
  command->callback([&action, command, options] {
    options->sweep.trials_given = command->count("--trials") > 0;
    options->sweep.finalists_given = command->count("--finalists") > 0;
    const bool jobs_given = command->count("--jobs") > 0;
    action = [options, jobs_given] { return plan(*options, jobs_given); };
  });
}

}  // namespace pascaline::cli
