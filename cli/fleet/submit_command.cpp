#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "app/sweep/plan_options.hpp"
#include "app/sweep/sweep_shard.hpp"
#include "app/text.hpp"
#include "cli/command.hpp"
#include "cli/fleet/batch_template.hpp"
#include "cli/fleet/fleet_commands.hpp"
#include "cli/fleet/hosts.hpp"
#include "cli/fleet/submissions.hpp"
#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "core/util/duration.hpp"
#include "core/util/paths.hpp"
#include "core/util/shown_text.hpp"

namespace pascaline::cli {
namespace {

// Around the sweep's own time: starting, a last trial, and the two minutes in which it ends.
constexpr double kMarginS = 600;

struct FleetSubmitOptions {
  std::string folder;
  bool slurm = false;
  std::vector<std::string> hosts;
  OptionWords paths;  ///< of the command line, for every shard
  std::vector<int> shards;
  std::string template_file;
  bool print_template = false;
  bool dry_run = false;
  std::string gres = "gpu:1";
  std::string time;
  std::vector<std::string> sbatch;
  std::string program;
};

std::string time_limit(const Fleet& fleet, const FleetSubmitOptions& options) {
  const double seconds = !options.time.empty() ? parse_duration_s(options.time)
                         : fleet.budget_s > 0  ? fleet.budget_s + kMarginS
                                               : 0;
  if (seconds == 0) {
    throw UsageError(
        "the plan has no --budget that a time limit would follow from: give the jobs one with --time, e.g. --time 8h");
  }
  return std::to_string(static_cast<std::int64_t>(std::ceil(seconds / 60)));  // Slurm counts in minutes
}

// Slurm puts something in place of %A; a percent sign of the folder's own is doubled.
std::string slurm_output(const std::string& folder) {
  std::string pattern;
  for (const char letter : folder) {
    pattern += letter == '%' ? std::string("%%") : std::string(1, letter);
  }
  return batch_word(pattern + "/slurm-%A_%a.out");
}

std::string command_of_task(const std::string& program, const FleetSubmitOptions& options) {
  std::string command =
      fmt::format("{} fleet run {} --shard \"$SLURM_ARRAY_TASK_ID\"", shell_word(program), shell_word(options.folder));
  for (const auto& [option, value] : options.paths) {
    command += fmt::format(" {} {}", option, shell_word(value));
  }
  return command;
}

std::string batch_script(const Fleet& fleet, const FleetSubmitOptions& options, const std::vector<int>& shards) {
  const std::string name = options.template_file.empty() ? "the template" : options.template_file;
  const std::string text =
      options.template_file.empty() ? std::string(batch_template()) : read_file(options.template_file, 1 << 20);
  const std::string program = options.program.empty() ? own_program().string() : options.program;
  return filled_template(text, name,
                         {{"name", "pascaline-" + fleet.id},
                          {"fleet", fleet.id},
                          {"folder", batch_word(options.folder)},
                          {"array", ranges_text(shards)},
                          {"gres", options.gres},
                          {"time", time_limit(fleet, options)},
                          {"output", slurm_output(options.folder)},
                          {"command", command_of_task(program, options)}},
                         {"array", "time", "command"});
}

int submit_slurm(const Fleet& fleet, const FleetSubmitOptions& options, const std::vector<int>& shards) {
  require_paths(fleet, options.paths, fleet_words("submit", options.folder, options.paths) + " --slurm");
  const std::string script = batch_script(fleet, options, shards);
  if (options.dry_run) {
    fmt::print("{}", script);
    return kSuccess;
  }
  const std::string file = options.folder + "/batch.sh";
  replace_file(file, script);
  const std::string job = submit_to_slurm(file, options.sbatch);
  Submissions submissions = load_submissions(options.folder, fleet);
  submissions.slurm_jobs.push_back(job);
  save_submissions(options.folder, submissions);
  fmt::print("Slurm has {} as job {} (shards {}); next: pascaline fleet status {}\n", counted(shards.size(), "shard"),
             job, ranges_text(shards), shell_word(options.folder));
  return kSuccess;
}

// Paths of this machine mean nothing on others.
void require_no_paths(const Fleet& fleet, const OptionWords& given) {
  const OptionWords& paths = given.empty() ? fleet.paths : given;
  if (!paths.empty()) {
    throw Error(
        fmt::format("{} is a path of this machine: over ssh only the program's own kernels are copied; plan without "
                    "it, or use a folder that all machines see",
                    options_text({paths.front()})));
  }
}

std::vector<HostShards> share_out(const Fleet& fleet, const std::vector<std::string>& hosts,
                                  const std::vector<int>& shards) {
  std::vector<HostShards> shared;
  for (const std::string& host : hosts) {
    shared.push_back({host, folder_on_host(fleet, host), {}});
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shared[i % shared.size()].shards.push_back(shards[i]);
  }
  std::erase_if(shared, [](const HostShards& host) { return host.shards.empty(); });
  return shared;
}

int submit_ssh(const Fleet& fleet, const FleetSubmitOptions& options, const std::vector<int>& shards) {
  require_no_paths(fleet, options.paths);
  require_hosts(options.hosts);
  const std::vector<HostShards> shared = share_out(fleet, options.hosts, shards);
  for (const HostShards& host : shared) {
    if (options.dry_run) {
      fmt::print("{}: shards {} in {}\n", host.host, ranges_text(host.shards), host.folder);
    } else {
      bring_program(host.host, host.folder, options.folder);
    }
  }
  if (options.dry_run) {
    return kSuccess;
  }
  Submissions submissions = load_submissions(options.folder, fleet);
  for (const HostShards& host : shared) {
    start_on_host(host);
    submissions.hosts.push_back(host);
    save_submissions(options.folder, submissions);
    fmt::print("{}: shards {} started in {}\n", host.host, ranges_text(host.shards), host.folder);
    std::fflush(stdout);
  }
  fmt::print("next: pascaline fleet status {} --ssh {}\n", shell_word(options.folder), fmt::join(options.hosts, ","));
  return kSuccess;
}

void require_consistent(const FleetSubmitOptions& options) {
  if (options.slurm == !options.hosts.empty()) {
    throw UsageError("say where the shards are to run: --slurm, or --ssh HOSTS");
  }
  if (!options.slurm && (!options.template_file.empty() || !options.time.empty() || !options.sbatch.empty())) {
    throw UsageError("--template, --time and --sbatch are about jobs of Slurm: give --slurm");
  }
}

int submit(FleetSubmitOptions options) {
  if (options.print_template) {
    fmt::print("{}", batch_template());
    return kSuccess;
  }
  if (options.folder.empty()) {
    throw UsageError("folder is required");
  }
  require_consistent(options);
  const Fleet fleet = fleet_of(options.folder);
  require_same_clock(options.folder, fleet);
  std::vector<std::string> notes;
  std::vector<int> shards = options.shards;
  std::ranges::sort(shards);
  for (const int shard : shards) {
    if (shard > fleet.count()) {
      throw Error(
          fmt::format("--shard {}: the fleet in {} has {}", shard, options.folder, counted(fleet.count(), "shard")));
    }
  }
  if (shards.empty()) {
    shards = shards_to_give_out(fleet_status(options.folder, fleet, {.local = false, .hosts = options.hosts}, notes));
  }
  for (const std::string& note : notes) {
    fmt::print(stderr, "{}\n", clean_line(note));
  }
  if (shards.empty()) {
    fmt::print("nothing to give out: every shard is done, running or queued; `pascaline fleet status {}` shows them\n",
               shell_word(options.folder));
    return kSuccess;
  }
  return options.slurm ? submit_slurm(fleet, options, shards) : submit_ssh(fleet, options, shards);
}

}  // namespace

void add_fleet_submit_command(CLI::App& fleet, Action& action) {
  CLI::App* command =
      fleet.add_subcommand("submit", "Give out the shards that are neither done nor under way: to Slurm, or over ssh");
  const auto options = std::make_shared<FleetSubmitOptions>();
  const auto sweep = std::make_shared<SweepCommandOptions>();
  add_path_options(*command, *sweep);
  command->add_option("folder", options->folder, "Folder of the fleet")->check(not_empty());
  command->add_flag("--slurm", options->slurm, "As an array job: the folder must be one that the nodes see");
  add_hosts_option(*command, options->hosts,
                   "Run on these hosts (comma-separated), with your own ssh and keys; nothing is installed there");
  command->add_option("--shard", options->shards, "Only this shard, however it stands (repeatable)")
      ->transform(whole_number(1, kMaxFleetShards));
  command->add_option("--template", options->template_file, "Batch script with placeholders, in place of the usual one")
      ->check(CLI::ExistingFile);
  command->add_flag("--print-template", options->print_template, "Print the usual batch script, to be edited");
  command->add_flag("--dry-run", options->dry_run, "Print the batch script, or who would get what; submit nothing");
  command->add_option("--gres", options->gres, "What a job asks of Slurm to be given a GPU")->capture_default_str();
  command->add_option("--time", options->time, "Time limit of a job (default: the plan's --budget and 10 min)")
      ->check(duration(60));
  command->add_option("--sbatch", options->sbatch, "Option for sbatch, e.g. --sbatch=--partition=gpu (repeatable)");
  command->add_option("--program", options->program, "This program's file on the nodes (default: as here)")
      ->check(not_empty());
  command->footer(
      "Again after shards were lost, interrupted or failed, it gives out these only. A shard resumes what it has.\n\n"
      "Examples:\n"
      "  pascaline fleet submit night --slurm\n"
      "  pascaline fleet submit night --slurm --sbatch=--partition=gpu --dry-run\n"
      "  pascaline fleet submit night --ssh alpha,beta");
  command->callback([&action, options, sweep] {
    options->paths = given_paths(*sweep);
    action = [options] { return submit(*options); };
  });
}

}  // namespace pascaline::cli
