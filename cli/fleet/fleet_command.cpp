#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "app/sweep/plan_options.hpp"
#include "app/text.hpp"
#include "cli/fleet/fleet_commands.hpp"
#include "core/error.hpp"
#include "core/util/duration.hpp"
#include "tuner/fleet/attempts.hpp"

namespace pascaline::cli {

namespace {

constexpr std::array<std::string_view, 6> kWithPath{"--kernels", "--spaces",    "--nvrtc",
                                                    "--cache",   "--portfolio", "--sensors"};

}  // namespace

void add_fleet_folder(CLI::App& command, std::string& folder) {
  command.add_option("folder", folder, "Folder of the fleet: plan, databases and logs of its shards")
      ->required()
      ->check(not_empty());
}

void add_path_options(CLI::App& command, SweepCommandOptions& options) {
  CLI::App all;
  SweepCommandOptions unused;
  add_sweep_options(all, unused);
  add_sweep_options(command, options);
  for (const CLI::Option* option : all.get_options()) {
    const std::string name = option->get_name();
    if (std::ranges::find(kWithPath, name) == kWithPath.end() && name != "--help") {
      command.remove_option(command.get_option(name));
    }
  }
}

std::string fleet_words(std::string_view command, const std::string& folder, const OptionWords& paths) {
  return fmt::format("pascaline fleet {} {}{}{}", command, shell_word(folder), paths.empty() ? "" : " ",
                     options_text(paths));
}

Fleet fleet_of(std::string& folder) {
  folder = std::filesystem::absolute(folder).lexically_normal().string();
  while (folder.size() > 1 && folder.ends_with('/')) {
    folder.pop_back();
  }
  std::error_code unseen;
  if (!std::filesystem::exists(fleet_file(folder), unseen)) {
    throw Error(fmt::format("{} has no fleet.json: `pascaline fleet plan` makes one", folder));
  }
  return load_fleet(fleet_file(folder));
}

std::filesystem::path own_program() {
  std::error_code fault;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", fault);
  if (fault) {
    throw Error(fmt::format("cannot tell where this program lies: {}; give --program", fault.message()), fault.value());
  }
  return program;
}

void require_same_clock(const std::string& folder, const Fleet& fleet) {
  using std::chrono::milliseconds;
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const auto now_ms = std::chrono::duration_cast<milliseconds>(since).count();
  const double ahead_s = static_cast<double>(now_ms - folder_clock_unix_ms(folder)) / 1000;
  if (std::abs(ahead_s) > kMaxClockDifferenceS) {
    throw Error(
        fmt::format("the clock of this machine is {} {} that which stamps files in {}: set it (by NTP), then run "
                    "this again",
                    duration_text(std::abs(ahead_s)), ahead_s > 0 ? "ahead of" : "behind", folder));
  }
  const double before_s = static_cast<double>(fleet.planned_unix_ms - now_ms) / 1000;
  if (before_s > kMaxClockDifferenceS) {
    throw Error(
        fmt::format("the fleet in {} was planned {} later than this machine's clock shows: set the clocks (by "
                    "NTP), then run this again",
                    folder, duration_text(before_s)));
  }
}

namespace {

void add_fleet_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("fleet", "Divide a sweep among machines, follow it and gather its results");
  command->require_subcommand(1);
  add_fleet_plan_command(*command, action);
  add_fleet_submit_command(*command, action);
  add_fleet_run_command(*command, action);
  add_fleet_status_command(*command, action);
  add_fleet_gather_command(*command, action);
  command->footer(
      "A fleet is a folder that all machines see (or that is copied to each over ssh). docs/fleet.md goes from two\n"
      "machines to a cluster. `pascaline fleet COMMAND --help` has the options of one.\n\nExamples:\n"
      "  pascaline fleet plan night --shards 4 --workload model.json --budget 8h\n"
      "  pascaline fleet submit night --slurm\n"
      "  pascaline fleet status night\n"
      "  pascaline fleet gather night --db tuned.db");
}

const Command kFleetCommand(Heading::tune, 6, add_fleet_command);

}  // namespace

}  // namespace pascaline::cli
