#include "tuner/fleet/attempts.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <regex>

#include <nlohmann/json.hpp>

#include "core/util/draft_folder.hpp"
#include "core/util/paths.hpp"
#include "core/version.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kLargestAttempt = 1 << 16;
constexpr int kMaxAttempts = 100'000;
constexpr int kMaxFailures = 2;

std::filesystem::path attempt_file(const std::filesystem::path& folder, int shard, int number) {
  return folder / fmt::format("shard-{:04}.attempt-{}.json", shard, number);
}

std::int64_t now_unix_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

std::int64_t stamp_unix_ms(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1000 + status.st_mtim.tv_nsec / 1'000'000;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string slurm_job_here() {
  const std::string array = variable("SLURM_ARRAY_JOB_ID");
  return array.empty() ? variable("SLURM_JOB_ID") : array + "_" + variable("SLURM_ARRAY_TASK_ID");
}

std::string attempt_text(const Attempt& attempt) {
  const nlohmann::ordered_json json{{"shard", attempt.shard},
                                    {"attempt", attempt.number},
                                    {"state", name_of(attempt.state)},
                                    {"host", attempt.host},
                                    {"process", attempt.process.process_id},
                                    {"process_start", attempt.process.start},
                                    {"boot", attempt.process.boot_id},
                                    {"slurm_job", attempt.slurm_job},
                                    {"slurm_restart", attempt.slurm_restart},
                                    {"started_unix_ms", attempt.started_unix_ms},
                                    {"beat_unix_ms", attempt.beat_unix_ms},
                                    {"program", attempt.program},
                                    {"note", attempt.note},
                                    {"refused", attempt.refused}};
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::optional<Attempt> attempt_from(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) {
    return std::nullopt;
  }
  try {
    Attempt attempt;
    const auto state = json.at("state").get<std::string>();
    for (const AttemptState known :
         {AttemptState::running, AttemptState::done, AttemptState::interrupted, AttemptState::failed}) {
      attempt.state = state == name_of(known) ? known : attempt.state;
    }
    if (state != name_of(attempt.state)) {
      return std::nullopt;
    }
    attempt.host = json.at("host");
    attempt.process = {json.at("process"), json.at("process_start"), json.at("boot")};
    attempt.slurm_job = json.at("slurm_job");
    attempt.slurm_restart = json.at("slurm_restart");
    attempt.started_unix_ms = json.at("started_unix_ms");
    attempt.beat_unix_ms = json.at("beat_unix_ms");
    attempt.program = json.at("program");
    attempt.note = json.at("note");
    attempt.refused = json.value("refused", false);
    return attempt;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

// How often Slurm has started this job again; 0 outside of one.
int slurm_restarts_here() {
  return static_cast<int>(std::strtol(variable("SLURM_RESTART_COUNT").c_str(), nullptr, 10));
}

// The same job of Slurm started again: Slurm has ended what ran before.
bool is_earlier_start_of_this_job(const Attempt& attempt) {
  return !attempt.slurm_job.empty() && attempt.slurm_job == slurm_job_here() &&
         attempt.slurm_restart < slurm_restarts_here();
}

std::optional<Attempt> newest_on_disk(const std::filesystem::path& folder, int shard) {
  return newest_attempt(read_attempts(folder), shard);
}

}  // namespace

std::string_view name_of(AttemptState state) {
  switch (state) {
    case AttemptState::running:
      return "running";
    case AttemptState::done:
      return "done";
    case AttemptState::interrupted:
      return "interrupted";
    case AttemptState::failed:
      return "failed";
  }
  return "failed";
}

std::int64_t folder_clock_unix_ms(const std::filesystem::path& folder) {
  const DraftFolder made(folder / ".clock");
  struct stat status {};
  if (::stat(made.path().c_str(), &status) != 0) {
    throw Error(fmt::format("cannot look at {}: {}", made.path().string(), std::strerror(errno)), errno);
  }
  return stamp_unix_ms(status);
}

std::vector<Attempt> read_attempts(const std::filesystem::path& folder) {
  static const std::regex name(R"(shard-(\d{4,5})\.attempt-(\d{1,6})\.json)");
  std::vector<Attempt> attempts;
  std::error_code unseen;
  std::int64_t clock = now_unix_ms();
  try {
    clock = folder_clock_unix_ms(folder);
  } catch (const Error&) {  // who may only read takes the own clock
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder, unseen)) {
    const std::string file = entry.path().filename().string();
    std::smatch match;
    struct stat status {};
    if (!std::regex_match(file, match, name) || ::lstat(entry.path().c_str(), &status) != 0 ||
        !S_ISREG(status.st_mode)) {
      continue;
    }
    std::string text;
    try {
      text = read_file(entry.path(), kLargestAttempt);
    } catch (const Error&) {
      continue;
    }
    auto attempt = attempt_from(text);
    if (!attempt) {
      continue;
    }
    attempt->shard = std::stoi(match[1]);
    attempt->number = std::stoi(match[2]);
    attempt->age_s = std::max<double>(0, static_cast<double>(clock - stamp_unix_ms(status)) / 1000);
    attempts.push_back(std::move(*attempt));
  }
  std::ranges::sort(attempts, [](const Attempt& a, const Attempt& b) {
    return std::pair(a.shard, a.number) < std::pair(b.shard, b.number);
  });
  return attempts;
}

std::optional<Attempt> newest_attempt(const std::vector<Attempt>& attempts, int shard) {
  const auto last = std::ranges::find_if(attempts.rbegin(), attempts.rend(),
                                         [&](const Attempt& attempt) { return attempt.shard == shard; });
  return last == attempts.rend() ? std::nullopt : std::optional(*last);
}

bool may_pass(const std::vector<Attempt>& attempts, int shard) {
  const auto last = newest_attempt(attempts, shard);
  if (!last || last->state != AttemptState::failed) {
    return !last || last->state != AttemptState::done;
  }
  int failures = 0;
  for (const Attempt& attempt : attempts) {
    if (attempt.shard == shard && attempt.state == AttemptState::failed) {
      ++failures;
      if (attempt.refused && attempt.host == host_name() && attempt.process == this_process()) {
        return false;
      }
    }
  }
  return failures < kMaxFailures;
}

bool is_lost(const Attempt& attempt, double lost_after_s) {
  if (attempt.state != AttemptState::running) {
    return false;
  }
  // Containers of one machine share its boot, and not their processes: their names tell them apart.
  if (attempt.host == host_name() && attempt.process.boot_id == this_process().boot_id) {
    return !is_alive(attempt.process);
  }
  return attempt.age_s > lost_after_s;
}

ShardClaim::ShardClaim(const std::filesystem::path& folder, int shard, double lost_after_s) : folder_(folder) {
  const std::optional<Attempt> last = newest_on_disk(folder, shard);
  if (last && last->state == AttemptState::running && !is_lost(*last, lost_after_s) &&
      !is_earlier_start_of_this_job(*last)) {
    throw ShardTakenError(
        fmt::format("shard {} is worked on by process {} of {}, which gave a sign of life {:.0f} s ago", shard,
                    last->process.process_id, last->host, last->age_s));
  }
  attempt_.shard = shard;
  attempt_.number = last ? last->number + 1 : 1;
  if (attempt_.number > kMaxAttempts) {
    throw Error(fmt::format("shard {} was begun {} times already; look into its log in {}", shard, kMaxAttempts,
                            folder.string()));
  }
  attempt_.host = host_name();
  attempt_.process = this_process();
  attempt_.slurm_job = slurm_job_here();
  attempt_.slurm_restart = slurm_restarts_here();
  attempt_.started_unix_ms = now_unix_ms();
  attempt_.beat_unix_ms = attempt_.started_unix_ms;
  attempt_.program = kVersion;
  // Whole from its first moment, and only where there is none: link does both, on network file systems, too.
  const auto file = attempt_file(folder, shard, attempt_.number);
  const DraftFolder made(folder / ".claim");
  const auto draft = made.path() / "attempt";
  write_file_atomically(draft, attempt_text(attempt_));
  const int fault = ::link(draft.c_str(), file.c_str()) == 0 ? 0 : errno;
  if (fault == EEXIST) {
    if (const auto there = newest_on_disk(folder, shard); !there || there->number < attempt_.number) {
      throw Error(
          fmt::format("cannot work on shard {}: {} is not the record of the attempt that its name says, but damaged or "
                      "something else; remove it and start again",
                      shard, file.string()));
    }
    throw ShardTakenError(fmt::format("shard {} was just taken by another process", shard));
  }
  if (fault != 0) {
    throw Error(fmt::format("cannot make {}: {}", file.string(), std::strerror(fault)), fault);
  }
}

bool ShardClaim::is_ours() const {
  std::error_code unseen;
  return !std::filesystem::exists(attempt_file(folder_, attempt_.shard, attempt_.number + 1), unseen);
}

void ShardClaim::write() const {
  replace_file(attempt_file(folder_, attempt_.shard, attempt_.number), attempt_text(attempt_));
}

bool ShardClaim::beat() {
  if (!is_ours()) {
    return false;
  }
  attempt_.beat_unix_ms = now_unix_ms();
  write();
  return true;
}

void ShardClaim::end(AttemptState state, const std::string& note, bool refused) {
  if (!is_ours()) {
    return;
  }
  attempt_.state = state;
  attempt_.note = note;
  attempt_.refused = refused;
  attempt_.beat_unix_ms = now_unix_ms();
  write();
}

}  // namespace pascaline
