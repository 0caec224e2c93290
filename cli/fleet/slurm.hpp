#pragma once

#include <string>
#include <vector>

namespace pascaline::cli {

/// A task of an array of Slurm that has not ended.
struct SlurmTask {
  std::string job;  ///< of the array
  int shard = 0;
  std::string state;   ///< "PENDING", "RUNNING", …
  std::string reason;  ///< why it waits, or where it runs
};

/// Tasks of these arrays that Slurm still has. None where there is no `squeue`, or no controller answers: then `fault`
/// says why.
[[nodiscard]] std::vector<SlurmTask> tasks_in_slurm(const std::vector<std::string>& jobs, std::string& fault);

/// What Slurm's accounting says of how a task ended ("NODE_FAIL", "PREEMPTED", "TIMEOUT"); empty where there is none.
[[nodiscard]] std::string end_in_slurm(const std::string& job_task);

/// Submits a script; returns the job's number. Throws Error with what sbatch says.
[[nodiscard]] std::string submit_to_slurm(const std::string& script, const std::vector<std::string>& options);

/// "1-3,6" of ascending numbers.
[[nodiscard]] std::string ranges_text(const std::vector<int>& numbers);

}  // namespace pascaline::cli
