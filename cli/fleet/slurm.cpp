#include "cli/fleet/slurm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <sstream>

#include "core/error.hpp"
#include "core/util/process.hpp"
#include "core/util/shown_text.hpp"

namespace pascaline::cli {
namespace {

constexpr std::chrono::seconds kSlurmPatience{60};

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, '|');) {
    fields.push_back(field);
  }
  return fields;
}

int shard_number(const std::string& text) {
  int value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc{} && end == text.data() + text.size() ? value : 0;
}

std::string first_line(const std::string& text) { return clean_line(text.substr(0, text.find('\n'))); }

}  // namespace

std::vector<SlurmTask> tasks_in_slurm(const std::vector<std::string>& jobs, std::string& fault) {
  if (jobs.empty()) {
    return {};
  }
  ProcessResult result;
  try {
    result = run_process({"squeue", "--noheader", "--array", "--format=%F|%K|%T|%R"}, kSlurmPatience);
  } catch (const Error& error) {
    fault = error.what();
    return {};
  }
  if (result.exit_code != 0) {
    fault = "squeue: " + first_line(result.output);
    return {};
  }
  std::vector<SlurmTask> tasks;
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() >= 3 && std::ranges::find(jobs, fields[0]) != jobs.end() && shard_number(fields[1]) > 0) {
      tasks.push_back({fields[0], shard_number(fields[1]), fields[2], fields.size() > 3 ? fields[3] : ""});
    }
  }
  return tasks;
}

std::string end_in_slurm(const std::string& job_task) {
  if (job_task.find_first_not_of("0123456789_") != std::string::npos) {
    return "";  // no job's number, whoever wrote the attempt
  }
  try {
    const ProcessResult result =
        run_process({"sacct", "--noheader", "--allocations", "--parsable2", "--format=State", "--jobs=" + job_task},
                    kSlurmPatience);
    return result.exit_code == 0 ? first_line(result.output) : "";
  } catch (const Error&) {
    return "";
  }
}

std::string submit_to_slurm(const std::string& script, const std::vector<std::string>& options) {
  std::vector<std::string> command{"sbatch", "--parsable"};
  command.insert(command.end(), options.begin(), options.end());
  command.push_back(script);
  const ProcessResult result = run_process(command, kSlurmPatience);
  const std::string job = result.output.substr(0, result.output.find_first_of(";\n"));
  if (result.exit_code != 0 || job.empty() || job.find_first_not_of("0123456789") != std::string::npos) {
    throw Error(fmt::format("sbatch did not take {}: {}", script, clean_line(result.output)), result.exit_code);
  }
  return job;
}

std::string ranges_text(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
    text += last > i ? fmt::format("-{}", numbers[last]) : "";
    i = last + 1;
  }
  return text;
}

}  // namespace pascaline::cli
