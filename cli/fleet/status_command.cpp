#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "app/text.hpp"
#include "cli/command.hpp"
#include "cli/fleet/fleet_commands.hpp"
#include "cli/fleet/submissions.hpp"
#include "core/util/counted.hpp"
#include "core/util/duration.hpp"
#include "core/util/shown_text.hpp"

namespace pascaline::cli {
namespace {

struct FleetStatusOptions {
  std::string folder;
  FleetSources sources;
  bool as_json = false;
};

bool is_under_way(const ShardStatus& shard) { return shard.state == "running" || shard.state == "queued"; }

void print_json(const FleetStatusOptions& options, const Fleet& fleet, const std::vector<ShardStatus>& shards,
                const std::vector<std::string>& notes) {
  nlohmann::ordered_json json{{"fleet", fleet.id},
                              {"folder", options.folder},
                              {"working", std::ranges::any_of(shards, is_under_way)},
                              {"shards", nlohmann::ordered_json::array()},
                              {"notes", notes}};
  for (const ShardStatus& shard : shards) {
    const FleetShard& part = fleet.shards[static_cast<std::size_t>(shard.shard - 1)];
    json["shards"].push_back(
        {{"shard", shard.shard},
         {"state", shard.state},
         {"attempts", shard.attempts},
         {"where", shard.where},
         {"problems", part.problems.size()},
         {"expected_s", part.expected_s},
         {"age_s", shard.age_s < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(shard.age_s)},
         {"note", shard.note}});
  }
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void print_table(const std::vector<ShardStatus>& shards, const std::vector<std::string>& notes) {
  std::vector<std::vector<std::string>> rows{{"shard", "state", "attempts", "last sign of life", "where"}};
  std::map<std::string, int> counts;
  for (const ShardStatus& shard : shards) {
    rows.push_back({std::to_string(shard.shard), shard.state, std::to_string(shard.attempts),
                    shard.age_s < 0 ? "-" : duration_text(shard.age_s) + " ago",
                    shard.where.empty() ? "-" : clean_line(shard.where)});
    ++counts[shard.state];
  }
  fmt::print("{}", aligned_columns(rows));
  for (const ShardStatus& shard : shards) {
    if (!shard.note.empty()) {
      fmt::print("shard {}: {}\n", shard.shard, clean_line(shard.note));
    }
  }
  for (const std::string& note : notes) {
    fmt::print("{}\n", clean_line(note));
  }
  if (std::ranges::any_of(shards, [](const ShardStatus& shard) { return shard.state == "failed"; })) {
    fmt::print("`fleet run FOLDER --shard N` tries a failed shard again, however often it failed\n");
  }
  std::string summary;
  for (const auto& [state, count] : counts) {
    summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", count, state);
  }
  fmt::print("{}: {}\n", counted(shards.size(), "shard"), summary);
}

int status(FleetStatusOptions options) {
  const Fleet fleet = fleet_of(options.folder);
  std::vector<std::string> notes;
  require_hosts_named(options.folder, fleet, options.sources);
  const std::vector<ShardStatus> shards = fleet_status(options.folder, fleet, options.sources, notes);
  if (options.as_json) {
    print_json(options, fleet, shards, notes);
  } else {
    print_table(shards, notes);
  }
  const bool all_done = std::ranges::all_of(shards, [](const ShardStatus& shard) { return shard.state == "done"; });
  return all_done || std::ranges::any_of(shards, is_under_way) ? kSuccess : kNegative;
}

}  // namespace

void add_fleet_status_command(CLI::App& fleet, Action& action) {
  CLI::App* command = fleet.add_subcommand("status", "Show how all shards stand");
  const auto options = std::make_shared<FleetStatusOptions>();
  add_fleet_folder(*command, options->folder);
  add_source_options(*command, options->sources);
  command->add_flag("--json", options->as_json, "Print JSON");
  command->footer(
      "waiting: nobody has begun it. queued: Slurm, or a host, has it to begin. lost: its process is gone. "
      "interrupted,\n"
      "failed: it ended so; the note says why. unknown: its host does not answer.\n"
      "Exit codes: 0 all are done, or some are under way; 3 neither: `pascaline fleet submit` gives out the rest.\n\n"
      "Examples:\n  pascaline fleet status night\n  pascaline fleet status night --ssh alpha,beta\n"
      "  pascaline fleet status night --json");
  command->callback([&action, options] { action = [options] { return status(*options); }; });
}

}  // namespace pascaline::cli
