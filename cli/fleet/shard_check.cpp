#include "cli/fleet/shard_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <tuple>

#include "app/sweep/plan_options.hpp"
#include "cli/fleet/fleet_commands.hpp"
#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "core/util/duration.hpp"
#include "db/overview.hpp"
#include "db/store.hpp"
#include "db/sweep_plan.hpp"
#include "report/text.hpp"

namespace pascaline::cli {
namespace {

std::string refusal_of_identity(const ShardIdentity& found, const Fleet& fleet) {
  if (found.shard.count != fleet.count()) {
    return fmt::format("it is shard {}, and this fleet has {}", found.shard.text(), counted(fleet.count(), "shard"));
  }
  return found.fleet == fleet.id ? "" : fmt::format("it is of fleet {}, whose plan is another", found.fleet);
}

std::string refusal_of_clock(const SessionRow& session, const Fleet& fleet) {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const auto now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  const double before_s = static_cast<double>(fleet.planned_unix_ms - session.started_unix_ms) / 1000;
  const double ahead_s = static_cast<double>(session.started_unix_ms - now_ms) / 1000;
  if (before_s > kMaxClockDifferenceS) {
    return fmt::format("its clock is off: it began {} before the fleet was planned", duration_text(before_s));
  }
  return ahead_s > kMaxClockDifferenceS ? fmt::format("its clock is off: it begins {} from now", duration_text(ahead_s))
                                        : "";
}

std::string refusal_of_versions(const std::vector<VersionTrials>& measured, const SessionRow& session,
                                const Fleet& fleet) {
  if (session.program_version != fleet.program) {
    return fmt::format("pascaline {} measured it, and {} planned the fleet", session.program_version, fleet.program);
  }
  for (const VersionTrials& one : measured) {
    if (one.session != session.id) {
      continue;
    }
    const auto planned = std::ranges::find_if(
        fleet.kernels, [&](const PlannedKernel& kernel) { return kernel.name == one.kernel.name; });
    if (planned == fleet.kernels.end() || planned->source_hash != one.kernel.source_hash) {
      return fmt::format("its kernel '{}' is another version than the plan's", one.kernel.name);
    }
    if (planned->space_hash != one.space_hash) {
      return fmt::format("its search space of '{}' is another version than the plan's", one.kernel.name);
    }
  }
  return "";
}

// The problems that a plan tunes, each with the part of its space.
std::set<std::string> tuned_by(const std::vector<PlannedProblem>& problems) {
  std::set<std::string> texts;
  for (const PlannedProblem& problem : problems) {
    if (problem.count > 0) {
      texts.insert(fmt::format("{}, part {}", problem.problem.text(), problem.part.text()));
    }
  }
  return texts;
}

// Empty if the option is not among them.
std::string value_of(const OptionWords& options, std::string_view option) {
  const auto found = std::ranges::find_if(options, [&](const auto& one) { return one.first == option; });
  return found == options.end() ? std::string() : found->second;
}

// What of a shard's search is not as the plan says: problems, parts of their spaces, trials, searcher and seed.
std::string refusal_of_search(const Store& store, const SessionRow& session, const Fleet& fleet, int shard) {
  const auto searched = store.plan(session.run_uuid);
  if (!searched) {
    return "";
  }
  if (tuned_by(searched->problems) != tuned_by(fleet.shards[static_cast<std::size_t>(shard - 1)].problems)) {
    return "its problems, or the parts of their spaces, are not those that the plan gives its shard";
  }
  const OptionWords options = options_of(*searched);
  for (const char* const option : {"--trials", "--searcher", "--seed"}) {
    const std::string value = value_of(options, option);
    const std::string planned = value_of(fleet.options, option);
    if (value != planned) {
      return fmt::format("it was searched with {} {}, and the plan has {}", option, value.empty() ? "left out" : value,
                         planned.empty() ? "none" : planned);
    }
  }
  return "";
}

void look_into(const Store& store, const Fleet& fleet, const Accepted& accepted, ShardDatabase& found) {
  const std::vector<SessionRow> sessions = store.sessions();
  const std::vector<VersionTrials> measured = store.trials_by_version();
  if (sessions.empty()) {
    found.refusal = "it holds no session";
  }
  for (const SessionRow& session : sessions) {
    const auto identity = shard_of_options(session.options_json);
    std::string refusal = identity ? refusal_of_identity(*identity, fleet) : "it holds a sweep that is not of a fleet";
    if (refusal.empty() && found.shard != 0 && found.shard != identity->shard.index) {
      refusal = fmt::format("it holds shards {} and {}", found.shard, identity->shard.index);
    }
    if (refusal.empty()) {
      found.shard = identity->shard.index;
    }
    refusal = refusal.empty() ? refusal_of_search(store, session, fleet, found.shard) : refusal;
    refusal = refusal.empty() && !accepted.clock ? refusal_of_clock(session, fleet) : refusal;
    refusal = refusal.empty() && !accepted.versions ? refusal_of_versions(measured, session, fleet) : refusal;
    found.refusal = found.refusal.empty() ? refusal : found.refusal;
    found.finished = found.finished || session.state == "finished";
    found.running = found.running || session.alive;
    found.started_unix_ms = std::max(found.started_unix_ms, session.started_unix_ms);
  }
  for (const VersionTrials& one : measured) {
    found.trials += one.counts.trials;
  }
  std::set<std::string> decided;
  for (const Winner& winner : store.winners("", nullptr)) {
    decided.insert(winner.trial.problem.text());
  }
  found.decided = static_cast<std::int64_t>(decided.size());
}

}  // namespace

ShardDatabase look_at_shard(const std::filesystem::path& file, const Fleet& fleet, const Accepted& accepted) {
  ShardDatabase found;
  found.file = file;
  try {
    const Store store(file, OpenMode::read_only);
    look_into(store, fleet, accepted, found);
  } catch (const Error& error) {
    const std::string what = error.what();
    const std::string prefix = file.string() + ": ";
    found.refusal = what.starts_with(prefix) ? what.substr(prefix.size()) : what;
  }
  return found;
}

void keep_fullest(std::vector<ShardDatabase>& databases) {
  const auto rank = [](const ShardDatabase& one) { return std::tuple(one.finished, one.decided, one.trials); };
  std::map<int, ShardDatabase*> fullest;
  for (ShardDatabase& one : databases) {
    if (!one.refusal.empty()) {
      continue;
    }
    ShardDatabase*& kept = fullest[one.shard];
    if (kept == nullptr) {
      kept = &one;
      continue;
    }
    ShardDatabase* other = &one;
    if (rank(one) > rank(*kept)) {
      std::swap(kept, other);
    }
    other->refusal = fmt::format("shard {} was run more than once, and {} holds {} of it", other->shard,
                                 kept->file.filename().string(), rank(*kept) > rank(*other) ? "more" : "as much");
  }
}

}  // namespace pascaline::cli
