#include "cli/fleet/submissions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "cli/fleet/hosts.hpp"
#include "core/error.hpp"
#include "core/file_words.hpp"
#include "core/util/json_reader.hpp"
#include "core/util/paths.hpp"

namespace pascaline::cli {
namespace {

constexpr std::size_t kLargestFile = 16U << 20U;

std::filesystem::path submissions_file(const std::filesystem::path& folder) { return folder / "submissions.json"; }

ShardStatus from_attempts(int shard, const std::vector<Attempt>& attempts) {
  ShardStatus status;
  status.shard = shard;
  status.state = "waiting";
  const auto last = newest_attempt(attempts, shard);
  if (!last) {
    return status;
  }
  status.state = is_lost(*last) ? "lost" : std::string(name_of(last->state));
  status.attempts = last->number;
  status.where = last->slurm_job.empty() ? fmt::format("{}, process {}", last->host, last->process.process_id)
                                         : fmt::format("{}, Slurm job {}", last->host, last->slurm_job);
  status.note = last->note;
  status.age_s = last->age_s;
  if (status.state == "lost") {
    status.note = last->slurm_job.empty() ? "" : end_in_slurm(last->slurm_job);
    status.note = status.note.empty() ? "its process is gone and left no message: it was killed, perhaps because "
                                        "memory ran out, or its machine went down"
                                      : status.note;
  }
  return status;
}

// What Slurm has is queued until its process begins, and after it was ended to be started again.
void add_slurm(const std::vector<SlurmTask>& tasks, std::vector<ShardStatus>& shards) {
  for (const SlurmTask& task : tasks) {
    const auto found = std::ranges::find_if(shards, [&](const ShardStatus& one) { return one.shard == task.shard; });
    if (found == shards.end() || found->state == "done" || found->state == "running") {
      continue;
    }
    found->note = found->attempts > 0 ? fmt::format("was {}; in Slurm: {} {}", found->state, task.state, task.reason)
                                      : fmt::format("in Slurm: {} {}", task.state, task.reason);
    found->where = fmt::format("Slurm job {}_{}", task.job, task.shard);
    found->state = "queued";
  }
}

std::string job_from(const JsonNode& node) {
  std::string job = node.name();
  if (job.find_first_not_of("0123456789") != std::string::npos) {
    node.fail(fmt::format("'{}' is not the number of a job of Slurm", job));
  }
  return job;
}

HostShards host_from(const JsonNode& node, const Fleet& fleet) {
  const std::string name = node.at("host").name();
  if (const auto why = why_no_host(name)) {
    node.at("host").fail(fmt::format("'{}' {}", name, *why));
  }
  HostShards host{name, folder_on_host(fleet, name), {}};
  const JsonNode shards = node.at("shards");
  for (std::size_t i = 0; i < shards.array_size(); ++i) {
    const std::int64_t shard = shards.at(i).integer();
    if (shard < 1 || shard > fleet.count()) {
      shards.at(i).fail(fmt::format("there is no shard {}: the fleet has {}", shard, fleet.count()));
    }
    host.shards.push_back(static_cast<int>(shard));
  }
  return host;
}

}  // namespace

bool FleetSources::asks(const HostShards& host) const {
  return !local && std::ranges::find(hosts, host.host) != hosts.end();
}

void add_source_options(CLI::App& command, FleetSources& sources) {
  add_hosts_option(command, sources.hosts, "Hosts that were given shards, by commas, as for `fleet submit`")
      ->envname("PASCALINE_FLEET_HOSTS");
  command.add_flag("--local", sources.local, "Only what is in the folder itself: ask neither Slurm nor hosts");
}

void require_hosts_named(const std::string& folder, const Fleet& fleet, const FleetSources& sources) {
  if (sources.local) {
    return;
  }
  std::vector<std::string> given_to;
  bool all_named = true;
  for (const HostShards& host : load_submissions(folder, fleet).hosts) {
    all_named = all_named && sources.asks(host);
    if (std::ranges::find(given_to, host.host) == given_to.end()) {
      given_to.push_back(host.host);
    }
  }
  if (!all_named) {
    throw Error(fmt::format(
        "shards of the fleet in {} were given to hosts over ssh, and hosts are asked only if you name them: "
        "give --ssh {} if these are yours, or --local to look at the folder alone",
        folder, fmt::join(given_to, ",")));
  }
}

Submissions load_submissions(const std::filesystem::path& folder, const Fleet& fleet) {
  Submissions submissions;
  std::error_code unseen;
  if (!std::filesystem::exists(submissions_file(folder), unseen)) {
    return submissions;
  }
  const std::string name = submissions_file(folder).string();
  const nlohmann::json json = parse_json(read_file(submissions_file(folder), kLargestFile), name);
  const JsonNode node(json, name);
  for (std::size_t i = 0; i < node.at("slurm").array_size(); ++i) {
    submissions.slurm_jobs.push_back(job_from(node.at("slurm").at(i)));
  }
  for (std::size_t i = 0; i < node.at("hosts").array_size(); ++i) {
    submissions.hosts.push_back(host_from(node.at("hosts").at(i), fleet));
  }
  return submissions;
}

void save_submissions(const std::filesystem::path& folder, const Submissions& submissions) {
  nlohmann::ordered_json json{{"slurm", submissions.slurm_jobs}, {"hosts", nlohmann::ordered_json::array()}};
  for (const HostShards& host : submissions.hosts) {
    json["hosts"].push_back({{"host", host.host}, {"shards", host.shards}});
  }
  replace_file(submissions_file(folder), json.dump(1) + "\n");
}

std::vector<ShardStatus> fleet_status(const std::string& folder, const Fleet& fleet, const FleetSources& sources,
                                      std::vector<std::string>& notes) {
  std::vector<ShardStatus> shards;
  const std::vector<Attempt> attempts = read_attempts(folder);
  for (int shard = 1; shard <= fleet.count(); ++shard) {
    shards.push_back(from_attempts(shard, attempts));
  }
  if (sources.local) {
    return shards;
  }
  const Submissions submissions = load_submissions(folder, fleet);
  std::string fault;
  add_slurm(tasks_in_slurm(submissions.slurm_jobs, fault), shards);
  if (!fault.empty()) {
    notes.push_back(fmt::format("Slurm could not be asked: {}", clean_note(fault)));
  }
  add_hosts(submissions.hosts, sources, shards, notes);
  return shards;
}

std::vector<int> shards_to_give_out(const std::vector<ShardStatus>& shards) {
  std::vector<int> free;
  for (const ShardStatus& shard : shards) {
    if (shard.state != "done" && shard.state != "running" && shard.state != "queued" && shard.state != "unknown") {
      free.push_back(shard.shard);
    }
  }
  return free;
}

}  // namespace pascaline::cli
