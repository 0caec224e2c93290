#include "app/sweep/sweep_shard.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "app/sweep/plan_options.hpp"
#include "app/sweep/resume.hpp"
#include "app/sweep/sweep_settings.hpp"
#include "app/text.hpp"
#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "core/version.hpp"
#include "model/fusion/site_space.hpp"
#include "runtime/device/compilers.hpp"
#include "tuner/fleet/partition.hpp"

namespace pascaline {
namespace {

// A cache is each machine's own, and a log each process's.
const std::set<std::string> kNeededPaths{"--kernels", "--spaces", "--nvrtc", "--portfolio", "--sensors"};

std::string part_text(const Fleet& fleet, const Shard& shard) {
  return fmt::format("shard {} of fleet {}", shard.text(), fleet.id);
}

// Spaces whose kernels no problem is of would only be listed.
void keep_needed_spaces(SweepWork& work) {
  std::set<std::string> needed;
  for (const SweepProblem& problem : work.problems) {
    needed.insert(problem.problem.kernel);
  }
  std::erase_if(work.spaces, [&](const Space& space) { return !needed.contains(space.kernel); });
}

}  // namespace

void require_shard_of(const Fleet& fleet, const SweepCommandOptions& options) {
  const Shard shard = parse_shard(options.shard);
  if (shard.count != fleet.count()) {
    throw UsageError(fmt::format("--shard {}: the fleet of {} has {}", shard.text(), options.fleet,
                                 counted(fleet.count(), "shard")));
  }
}

SweepCommandOptions fleet_options(const Fleet& fleet, const CLI::App& command) {
  StoredRun run;
  run.part = fmt::format("fleet {}", fleet.id);
  return planned_options(run, fleet.options, command);
}

OptionWords given_paths(const SweepCommandOptions& options) {
  OptionWords given = paths_of(options);
  if (is_compiler_wish(options.device.nvrtc)) {
    given.emplace_back("--nvrtc", options.device.nvrtc);
  }
  return given;
}

void require_paths(const Fleet& fleet, const OptionWords& given, const std::string& command) {
  OptionWords missing;
  for (const auto& path : fleet.paths) {
    const bool is_given = std::ranges::any_of(given, [&](const auto& one) { return one.first == path.first; });
    if (kNeededPaths.contains(path.first) && !is_given) {
      missing.push_back(path);
    }
  }
  if (!missing.empty()) {
    throw Error(
        fmt::format("fleet {} was planned with {}, and no path is ever taken from a file; if you trust what is there, "
                    "give it yourself: {} {}",
                    fleet.id, options_text(missing), command, options_text(missing)));
  }
}

SweepWork fleet_work(const Fleet& fleet, SweepCommandOptions& options) {
  const Shard shard = parse_shard(options.shard);
  if (fleet.program != kVersion) {
    throw Error(
        fmt::format("cannot run {}: it was planned by pascaline {}, and this is {}: use that version on every "
                    "machine, or plan again",
                    part_text(fleet, shard), fleet.program, kVersion));
  }
  require_paths(fleet, given_paths(options),
                fmt::format("pascaline sweep --fleet {} --shard {}", shell_word(options.fleet), shard.text()));
  set_sweep(options, options.sweep);
  options.sweep.record.shard = fleet.identity(shard.index);
  StoredRun run;
  run.part = part_text(fleet, shard);
  const FleetShard& part = fleet.shards[static_cast<std::size_t>(shard.index - 1)];
  run.plan.problems = part.problems;
  run.plan.kernels = fleet.kernels;
  SweepWork work;
  std::set<std::string> loaded;
  for (const PlannedProblem& planned : part.problems) {
    if (loaded.insert(planned.problem.kernel).second) {
      work.spaces.push_back(options.kernel.load_space(planned.problem.kernel));
    }
  }
  require_same_kernels(fleet,
                       planned_kernels(options, work.spaces));  // another space may be why a problem does not fit
  work.problems = resumed_problems(run, work.spaces);
  work.notes.push_back(fmt::format("{}: {}", run.part, counted(part.problems.size(), "problem")));
  return work;
}

void require_same_kernels(const Fleet& fleet, const std::vector<PlannedKernel>& here) {
  for (const PlannedKernel& kernel : here) {
    const auto planned =
        std::ranges::find_if(fleet.kernels, [&](const PlannedKernel& one) { return one.name == kernel.name; });
    const bool same_source = planned != fleet.kernels.end() && planned->source_hash == kernel.source_hash;
    if (!same_source || planned->space_hash != kernel.space_hash) {
      throw Error(
          fmt::format("the {} of kernel '{}' here is not that of fleet {}: give this machine the kernels that it "
                      "was planned with, or plan again",
                      same_source ? "search space" : "source", kernel.name, fleet.id));
    }
  }
}

void leave_sites_out(SweepWork& work) {
  std::set<std::string> sites;
  for (const SweepProblem& problem : work.problems) {
    if (is_site(problem.problem.kernel)) {
      sites.insert(problem.problem.kernel);
    }
  }
  if (sites.empty()) {
    return;
  }
  std::erase_if(work.problems, [](const SweepProblem& problem) { return is_site(problem.problem.kernel); });
  work.notes.push_back(
      fmt::format("sites of the model are left out, as they compare kernels of all shards: once everything is in one "
                  "database, sweep them there with --kernel {}",
                  fmt::join(sites, " --kernel ")));
}

void keep_shard(SweepWork& work, SweepOptions& sweep, const Shard& shard) {
  leave_sites_out(work);
  DividedWork divided = divide(work.problems, work.spaces, sweep, shard.count);
  const auto index = static_cast<std::size_t>(shard.index - 1);
  double all_s = 0;
  for (const double part_s : divided.expected_s) {
    all_s += part_s;
  }
  const auto of = std::ranges::count_if(work.problems, [](const SweepProblem& problem) { return !problem.between; });
  work.problems = std::move(divided.shards[index]);
  const auto mine = std::ranges::count_if(work.problems, [](const SweepProblem& problem) { return !problem.between; });
  keep_needed_spaces(work);
  work.notes.push_back(fmt::format("shard {} of fleet {}: {} of {}, {:.0f} % of the expected work", shard.text(),
                                   divided.fleet, mine, counted(of, "problem"),
                                   100 * divided.expected_s[index] / all_s));
  for (const SweepProblem& problem : work.problems) {
    if (!problem.part.is_whole()) {
      work.notes.push_back(fmt::format("{}: part {} of its space, which other shards share", problem.problem.text(),
                                       problem.part.text()));
    }
  }
  sweep.record.shard = ShardIdentity{divided.fleet, shard};
}

std::optional<ShardIdentity> shard_to_resume(const StoredRun& run, SweepCommandOptions& options,
                                             const std::optional<Fleet>& fleet) {
  if (options.shard.empty()) {
    if (run.shard) {
      options.shard = run.shard->shard.text();
    }
    return run.shard;
  }
  const Shard wanted = parse_shard(options.shard);
  if (!run.shard || run.shard->shard != wanted) {
    refuse_run(run, fmt::format("it is {}, not shard {}; leave --shard out, or give that one's database with --db",
                                run.shard ? "shard " + run.shard->shard.text() : "a whole sweep", wanted.text()));
  }
  if (fleet && fleet->id != run.shard->fleet) {
    refuse_run(run, fmt::format("it is of fleet {}, not of {}; give that fleet's database with --db", run.shard->fleet,
                                fleet->id));
  }
  return run.shard;
}

}  // namespace pascaline
