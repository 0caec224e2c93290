#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "app/sweep/plan_options.hpp"
#include "app/sweep/run_status.hpp"
#include "app/sweep/sweep_shard.hpp"
#include "cli/command.hpp"
#include "cli/fleet/fleet_commands.hpp"
#include "cli/fleet/rank.hpp"
#include "cli/fleet/shard_process.hpp"
#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "core/util/shown_text.hpp"
#include "core/version.hpp"
#include "db/store.hpp"
#include "tuner/fleet/attempts.hpp"

namespace pascaline::cli {
namespace {

using RunClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookInterval{50};
constexpr std::chrono::seconds kBeatInterval{5};
constexpr std::chrono::milliseconds kWaitForOthers{500};
constexpr std::chrono::seconds kPatienceOnceTaken{10};
constexpr std::chrono::seconds kPatienceWithWriters{120};

struct FleetRunOptions {
  std::string folder;
  std::vector<int> shards;  ///< empty: all
  std::string device;
  OptionWords paths;  ///< of the command line, for every shard
  bool mpi = false;
  double lost_after_s = kLostAfterS;
};

/// How a shard's process ended.
struct ShardEnd {
  AttemptState state = AttemptState::done;
  std::string note;
  bool refused = false;  ///< see Attempt
};

bool is_unfinished(const std::filesystem::path& database) {
  return session_to_resume(Store(database, OpenMode::read_only).sessions()) != nullptr;
}

bool is_written(const std::filesystem::path& database) {
  const std::vector<SessionRow> sessions = Store(database, OpenMode::read_only).sessions();
  return std::ranges::any_of(sessions, [](const SessionRow& session) { return session.alive; });
}

// An exit code that says why nothing can be done, of a process that has begun nothing: asked again it says so again.
bool is_refusal(int exit_code, const std::filesystem::path& database, int process_id) {
  if (exit_code != kFault && exit_code != kUsage) {
    return false;
  }
  std::error_code unseen;
  if (!std::filesystem::exists(database, unseen)) {
    return true;
  }
  try {
    const std::vector<SessionRow> sessions = Store(database, OpenMode::read_only).sessions();
    return std::ranges::none_of(sessions, [&](const SessionRow& session) { return session.process_id == process_id; });
  } catch (const StoreBusyError&) {
    return false;
  } catch (const StoreError&) {
    return true;
  }
}

// Its process came to the end, and whoever watched it did not live to say so.
bool is_finished(const std::filesystem::path& database, const ShardIdentity& shard) {
  const std::vector<SessionRow> sessions = Store(database, OpenMode::read_only).sessions();
  return std::ranges::any_of(sessions, [&](const SessionRow& session) {
    return session.state == "finished" && shard_of_options(session.options_json) == shard;
  });
}

// Killed from outside, a process says nothing itself.
std::string reason_of(int exit_code, const std::string& last_line) {
  constexpr int kSignalled = 128;
  if (exit_code <= kSignalled) {
    return last_line.empty() ? "it ended without a message" : last_line;
  }
  const int signal = exit_code - kSignalled;
  return fmt::format("its process was ended by signal {} ({}){}{}", signal, ::strsignal(signal),
                     signal == SIGKILL ? ", perhaps because memory ran out" : "",
                     last_line.empty() ? "" : "; it last said: " + last_line);
}

/// Works on shards of a fleet, one after the other.
class FleetRunner {
 public:
  FleetRunner(FleetRunOptions options, Fleet fleet)
      : options_(std::move(options)), fleet_(std::move(fleet)), program_(own_program().string()) {
    for (int shard = 1; shard <= fleet_.count(); ++shard) {
      wanted_.push_back(shard);
    }
    if (!options_.shards.empty()) {
      wanted_ = options_.shards;
    }
  }

  int run() {
    while (auto claim = next()) {
      tried_.insert(claim->attempt().shard);
      const ShardEnd end = work_on(*claim);
      claim->end(end.state, end.note, end.refused);
      say(claim->attempt().shard, fmt::format("{}{}{}", name_of(end.state), end.note.empty() ? "" : ": ", end.note));
    }
    return interrupted() ? kInterrupted : verdict();
  }

 private:
  void say(int shard, const std::string& text) const {
    fmt::print("shard {}: {}\n", Shard{shard, fleet_.count()}.text(), clean_line(text));
    std::fflush(stdout);
  }

  [[nodiscard]] bool is_wanted_still(const std::vector<Attempt>& attempts, int shard) const {
    const auto last = newest_attempt(attempts, shard);
    return !options_.shards.empty() && last && last->state == AttemptState::failed ? !tried_.contains(shard)
                                                                                   : may_pass(attempts, shard);
  }

  // The claim of a shard that could be had; nothing if there is none, or an interruption. With --mpi shards that others
  // work on are waited for, as they may die.
  std::optional<ShardClaim> next() {
    while (!interrupted()) {
      bool others = false;
      const std::vector<Attempt> attempts = read_attempts(options_.folder);
      for (const int shard : wanted_) {
        if (!is_wanted_still(attempts, shard)) {
          continue;
        }
        try {
          return std::optional<ShardClaim>(std::in_place, options_.folder, shard, options_.lost_after_s);
        } catch (const ShardTakenError& taken) {
          taken_ = taken.what();
          others = true;
        }
      }
      if (!others || !options_.mpi) {
        break;
      }
      std::this_thread::sleep_for(kWaitForOthers);
    }
    return std::nullopt;
  }

  [[nodiscard]] ShardEnd work_on(ShardClaim& claim) const {
    const int shard = claim.attempt().shard;
    const auto database = shard_database(options_.folder, shard);
    try {
      const bool exists = std::filesystem::exists(database);
      require_own_files(options_.folder, shard);
      if (exists && !wait_for_writers(claim, database)) {
        return {AttemptState::interrupted, "ended by a signal before it began"};
      }
      const bool resume = exists && is_unfinished(database);
      if (exists && !resume && is_finished(database, fleet_.identity(shard))) {
        return {};
      }
      say(shard, fmt::format("attempt {} begins{}", claim.attempt().number, resume ? ", resuming what there is" : ""));
      return watch(claim, resume);
    } catch (const StoreBusyError& error) {
      return {AttemptState::failed, error.what()};
    } catch (const StoreError& error) {
      return {AttemptState::failed, error.what(), true};
    } catch (const ForeignFileError& error) {
      return {AttemptState::failed, error.what(), true};
    } catch (const Error& error) {
      return {AttemptState::failed, error.what()};
    }
  }

  // A sweep that somebody else began on this machine, or that is still ending; false after an interruption.
  static bool wait_for_writers(ShardClaim& claim, const std::filesystem::path& database) {
    const auto last_moment = RunClock::now() + kPatienceWithWriters;
    auto next_beat = RunClock::now() + kBeatInterval;
    while (is_written(database)) {
      if (interrupted()) {
        return false;
      }
      if (RunClock::now() >= last_moment) {
        throw Error(fmt::format("another process writes {}: `pascaline status --db` shows it; end it, or wait",
                                database.string()));
      }
      if (RunClock::now() >= next_beat) {
        next_beat = RunClock::now() + kBeatInterval;
        (void)is_alive_sign(claim);
      }
      std::this_thread::sleep_for(kLookInterval);
    }
    return true;
  }

  [[nodiscard]] ShardEnd watch(ShardClaim& claim, bool resume) const {
    const int shard = claim.attempt().shard;
    const auto database = shard_database(options_.folder, shard);
    auto output = database;
    output.replace_extension(".out");
    ShardProcess process(command_for(shard, resume), output);
    bool asked = false;
    bool taken = false;
    auto next_beat = RunClock::now() + kBeatInterval;
    auto last_moment = RunClock::time_point::max();
    while (!process.has_ended()) {
      if (interrupted() && !std::exchange(asked, true)) {
        process.ask_to_end();
      }
      if (RunClock::now() >= next_beat && !taken) {
        next_beat = RunClock::now() + kBeatInterval;
        taken = !is_alive_sign(claim);
        if (taken) {
          process.ask_to_end();
          last_moment = RunClock::now() + kPatienceOnceTaken;
        }
      }
      if (RunClock::now() >= last_moment) {
        process.kill();
      }
      std::this_thread::sleep_for(kLookInterval);
    }
    if (taken) {
      return {AttemptState::failed, "another process took the shard over, as this one gave no sign of life"};
    }
    switch (process.exit_code()) {
      case kSuccess:
        return {};
      case kNegative:
        return {AttemptState::done, "none of its configurations is usable"};
      case kInterrupted:
        return {AttemptState::interrupted, "ended by a signal; what was measured is stored"};
      default:
        return {AttemptState::failed,
                fmt::format("{} (exit code {}; {})", reason_of(process.exit_code(), last_line_of(output)),
                            process.exit_code(), output.string()),
                is_refusal(process.exit_code(), database, process.process_id())};
    }
  }

  // A file system that cannot be written for a moment is no reason to end what measures.
  static bool is_alive_sign(ShardClaim& claim) {
    try {
      return claim.beat();
    } catch (const Error& error) {
      fmt::print(stderr, "pascaline: {}; trying again\n", clean_line(error.what()));
      return true;
    }
  }

  [[nodiscard]] std::vector<std::string> command_for(int shard, bool resume) const {
    const auto database = shard_database(options_.folder, shard);
    auto log = database;
    log.replace_extension(".log");
    std::vector<std::string> words{program_,  "sweep",
                                   "--fleet", fleet_file(options_.folder).string(),
                                   "--shard", Shard{shard, fleet_.count()}.text(),
                                   "--db",    database.string(),
                                   "--log",   log.string(),
                                   "--quiet"};
    if (!options_.device.empty()) {
      words.insert(words.end(), {"--device", options_.device});
    }
    for (const auto& path : options_.paths) {
      words.push_back(word_of(path));
    }
    if (resume) {
      words.emplace_back("--resume");
    }
    return words;
  }

  [[nodiscard]] int verdict() const {
    std::vector<std::string> failed;
    std::string again;
    int done = 0;
    const std::vector<Attempt> attempts = read_attempts(options_.folder);
    for (const int shard : wanted_) {
      const auto last = newest_attempt(attempts, shard);
      done += last && last->state == AttemptState::done ? 1 : 0;
      if (last && last->state == AttemptState::failed) {
        failed.push_back(fmt::format("shard {} failed in attempt {}: {}", shard, last->number, last->note));
        again += fmt::format(" --shard {}", shard);
      }
    }
    if (!failed.empty()) {
      throw Error(fmt::format("{}; once the cause is removed, try again: {}{}", fmt::join(failed, "; "),
                              fleet_words("run", options_.folder, options_.paths), again));
    }
    if (!options_.shards.empty() && done < static_cast<int>(wanted_.size())) {
      throw Error(taken_);
    }
    fmt::print("{} of {} done{}\n", done, counted(wanted_.size(), "shard"),
               done < static_cast<int>(wanted_.size()) ? ", others work on the rest" : "");
    return kSuccess;
  }

  FleetRunOptions options_;
  Fleet fleet_;
  std::string program_;
  std::vector<int> wanted_;
  std::string taken_;  ///< why the last shard that could not be had could not
  std::set<int> tried_;
};

bool is_for_emulator(const Fleet& fleet) {
  return std::ranges::any_of(
      fleet.options, [](const auto& option) { return option.first == "--devices" && is_emulator_name(option.second); });
}

int run(FleetRunOptions options) {
  Fleet fleet = fleet_of(options.folder);
  for (const int shard : options.shards) {
    if (shard > fleet.count()) {
      throw Error(
          fmt::format("--shard {}: the fleet in {} has {}", shard, options.folder, counted(fleet.count(), "shard")));
    }
  }
  if (fleet.program != kVersion) {
    throw Error(
        fmt::format("the fleet in {} was planned by pascaline {}, and this is {}: use that version on every "
                    "machine, or plan again",
                    options.folder, fleet.program, kVersion));
  }
  require_paths(fleet, options.paths, fleet_words("run", options.folder, options.paths));
  require_same_clock(options.folder, fleet);
  if (options.mpi) {
    const auto rank = rank_here();
    if (!rank) {
      throw UsageError(
          "--mpi: none of OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK and SLURM_PROCID is set: start it with mpirun or "
          "srun");
    }
    if (options.device.empty() && !is_for_emulator(fleet)) {
      options.device = device_of(*rank);
    }
  }
  catch_interrupts();
  return FleetRunner(std::move(options), std::move(fleet)).run();
}

}  // namespace

void add_fleet_run_command(CLI::App& fleet, Action& action) {
  CLI::App* command =
      fleet.add_subcommand("run", "Work on shards that nobody has, one after the other, until none is left");
  const auto options = std::make_shared<FleetRunOptions>();
  const auto sweep = std::make_shared<SweepCommandOptions>();
  add_path_options(*command, *sweep);
  add_fleet_folder(*command, options->folder);
  command->add_option("--shard", options->shards, "Only this shard (repeatable)")
      ->transform(whole_number(1, kMaxFleetShards));
  command->add_flag(
      "--mpi", options->mpi,
      "Under mpirun or srun: each rank works on the GPU of its number on its machine, takes what is free, "
      "and stays for what others may lose");
  command->add_option("-d,--device", options->device, "cuda:N or emulator (default: that of the plan)")
      ->check(device_name());
  command
      ->add_option("--lost-after", options->lost_after_s,
                   "Seconds without a sign of life after which another machine's shard is taken over")
      ->capture_default_str()
      ->check(number_within(2, 86400));
  command->footer(
      "What a shard has measured stays: whoever takes it up resumes it. A signal (Ctrl-C, SIGTERM) ends it "
      "properly.\n"
      "No path is taken from the plan: repeat the paths that the fleet was planned with (--kernels, ...).\n\n"
      "Examples:\n"
      "  pascaline fleet run night\n"
      "  pascaline fleet run night --shard 3\n"
      "  mpirun -n 4 pascaline fleet run night --mpi\n"
      "  srun --ntasks 8 --gpus-per-task 1 pascaline fleet run night --mpi");
  command->callback([&action, options, sweep] {
    options->paths = given_paths(*sweep);
    action = [options] { return run(*options); };
  });
}

}  // namespace pascaline::cli
