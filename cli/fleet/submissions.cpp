#include "cli/fleet/submissions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "cli/fleet/hosts.hpp"
#include "core/error.hpp"
#include "core/util/json_reader.hpp"
#include "core/util/paths.hpp"

namespace pascaline::cli {
namespace {

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
  if (status.state == "lost" && !last->slurm_job.empty()) {
    status.note = end_in_slurm(last->slurm_job);
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

}  // namespace

Submissions load_submissions(const std::filesystem::path& folder) {
  Submissions submissions;
  std::error_code unseen;
  if (!std::filesystem::exists(submissions_file(folder), unseen)) {
    return submissions;
  }
  const std::string name = submissions_file(folder).string();
  const nlohmann::json json = parse_json(read_file(submissions_file(folder)), name);
  const JsonNode node(json, name);
  for (std::size_t i = 0; i < node.at("slurm").array_size(); ++i) {
    submissions.slurm_jobs.push_back(node.at("slurm").at(i).name());
  }
  for (std::size_t i = 0; i < node.at("hosts").array_size(); ++i) {
    const JsonNode host = node.at("hosts").at(i);
    HostShards& read = submissions.hosts.emplace_back();
    read.host = host.at("host").name();
    read.folder = host.at("folder").name();
    for (std::size_t j = 0; j < host.at("shards").array_size(); ++j) {
      read.shards.push_back(static_cast<int>(host.at("shards").at(j).integer()));
    }
  }
  return submissions;
}

void save_submissions(const std::filesystem::path& folder, const Submissions& submissions) {
  nlohmann::ordered_json json{{"slurm", submissions.slurm_jobs}, {"hosts", nlohmann::ordered_json::array()}};
  for (const HostShards& host : submissions.hosts) {
    json["hosts"].push_back({{"host", host.host}, {"folder", host.folder}, {"shards", host.shards}});
  }
  write_file_atomically(submissions_file(folder), json.dump(1) + "\n");
}

std::vector<ShardStatus> fleet_status(const std::string& folder, const Fleet& fleet, bool local,
                                      std::vector<std::string>& notes) {
  std::vector<ShardStatus> shards;
  const std::vector<Attempt> attempts = read_attempts(folder);
  for (int shard = 1; shard <= fleet.count(); ++shard) {
    shards.push_back(from_attempts(shard, attempts));
  }
  if (local) {
    return shards;
  }
  const Submissions submissions = load_submissions(folder);
  std::string fault;
  add_slurm(tasks_in_slurm(submissions.slurm_jobs, fault), shards);
  if (!fault.empty()) {
    notes.push_back(fmt::format("Slurm could not be asked: {}", clean_note(fault)));
  }
  add_hosts(submissions.hosts, shards, notes);
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
