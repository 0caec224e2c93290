#include "runtime/dispatch/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/error.hpp"
#include "core/space/shape_distance.hpp"
#include "core/util/counted.hpp"
#include "db/outdated_winner.hpp"
#include "runtime/device/compilers.hpp"
#include "runtime/dispatch/closest_valid.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline {
namespace {

// What differs less, or lies within both intervals, is luck.
constexpr double kNoticeableSpeedup = 1.01;

bool noticeably_faster(const TimeSummary& fast, const TimeSummary& slow) {
  return fast.median_us > 0 && slow.median_us > kNoticeableSpeedup * fast.median_us && fast.high_us < slow.low_us;
}

// How near a winner's toolkit is to those that are here.
enum class Nearness : std::uint8_t { here, other_driver, missing };

Nearness nearness(const ToolkitRow& toolkit, const std::vector<ToolkitRow>& here) {
  if (std::find(here.begin(), here.end(), toolkit) != here.end()) {
    return Nearness::here;
  }
  return std::any_of(here.begin(), here.end(), [&](const ToolkitRow& one) { return same_compiler(one, toolkit); })
             ? Nearness::other_driver
             : Nearness::missing;
}

// What makes the code of a winner.
const ToolkitRow& maker_of(const Winner& winner, const std::vector<ToolkitRow>& here) {
  const auto own =
      std::find_if(here.begin(), here.end(), [&](const ToolkitRow& one) { return same_compiler(one, winner.toolkit); });
  return own != here.end() ? *own : here.front();
}

std::string why_refused(const Winner& winner, const Space& space, const KernelSource& source, const ToolkitRow& today) {
  if (winner.kernel.source_hash != source.hash) {
    return fmt::format("it was tuned for another version of the kernel's source ({:.8}, now {:.8}); tune it again",
                       winner.kernel.source_hash, source.hash);
  }
  if (winner.toolkit.target != today.target) {
    return fmt::format("it was tuned for target {}, not {}", winner.toolkit.target, today.target);
  }
  try {
    space.check(winner.trial.problem);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// A configuration from a database may be of another space or of none: that is a reason too, not a fault.
std::optional<std::string> why_unusable(const BoundSpace& space, const Config& config) {
  try {
    return space.why_invalid(config);
  } catch (const Error& error) {
    return error.what();
  }
}

std::string join(const std::string& first, const std::string& second) {
  return first.empty() || second.empty() ? first + second : first + "; " + second;
}

std::string toolkit_note(const ToolkitRow& then, const std::vector<ToolkitRow>& here, const ToolkitRow& maker) {
  if (then == maker) {
    return {};
  }
  const std::string note = fmt::format(", with {} while {} is in use", describe(then), describe(maker));
  return nearness(then, here) == Nearness::missing
             ? note + fmt::format(" ({} {} is not here: {})", then.compiler, then.version,
                                  how_to_get(then.compiler, then.version))
             : note;
}

// Of the fastest winner under the driver in use whose compiler is not here, if it is faster than the one that is used.
std::string missing_note(const TunedKernel& kernel, const std::vector<ToolkitRow>& here, const Winner& used) {
  const Winner* best = nullptr;
  for (const Winner& winner : kernel.winners) {
    if (winner.trial.problem == used.trial.problem && winner.trial.time &&
        nearness(winner.toolkit, here) == Nearness::missing &&
        winner.toolkit.driver_version == here.front().driver_version &&
        (best == nullptr || winner.trial.time->median_us < best->trial.time->median_us)) {
      best = &winner;
    }
  }
  if (best == nullptr || !used.trial.time || !noticeably_faster(*best->trial.time, *used.trial.time)) {
    return {};
  }
  return fmt::format("the winner built by {} {} was {:.2f} times as fast, but that compiler is not here: {}",
                     best->toolkit.compiler, best->toolkit.version,
                     used.trial.time->median_us / best->trial.time->median_us,
                     how_to_get(best->toolkit.compiler, best->toolkit.version));
}

Plan plan_of(const Winner& winner, const BoundSpace& space, Provenance provenance, const ToolkitRow& maker,
             std::string reason) {
  Plan plan;
  plan.toolkit = maker;
  plan.problem = space.problem();
  plan.config = winner.trial.config;
  plan.provenance = provenance;
  plan.reason = std::move(reason);
  plan.tuned_for = winner.trial.problem;
  plan.confidence = winner.confidence;
  return plan;
}

// The exact winner's plan; if there is none to use, nothing, and `notes` says why where a winner was passed over.
std::optional<Plan> plan_exact(const TunedKernel& kernel, const std::vector<ToolkitRow>& here, const BoundSpace& space,
                               std::string& notes) {
  for (const RefusedWinner& refused : kernel.refused) {
    if (same_shape(refused.problem, space.problem())) {
      notes = join(notes, fmt::format("its winner is not used: {}", refused.why));
    }
  }
  for (const Winner& winner : kernel.winners) {
    if (!same_shape(winner.trial.problem, space.problem())) {
      continue;
    }
    if (const auto why = why_unusable(space, winner.trial.config)) {
      notes = join(notes, fmt::format("its winner is not used: {}", *why));
      continue;
    }
    const ToolkitRow& maker = maker_of(winner, here);
    const std::string contents = winner.trial.problem.data.empty() ? "" : " with given contents";
    std::string reason = "tuned on this kind of device" + contents + toolkit_note(winner.toolkit, here, maker);
    notes = join(notes, missing_note(kernel, here, winner));
    Plan plan = plan_of(winner, space, Provenance::exact, maker, std::move(reason));
    plan.expected = winner.trial.time;
    return plan;
  }
  return std::nullopt;
}

std::optional<Plan> plan_nearest(const TunedKernel& kernel, const std::vector<ToolkitRow>& here,
                                 const BoundSpace& space, std::string& notes) {
  std::vector<std::pair<double, const Winner*>> candidates;
  for (const Winner& winner : kernel.winners) {
    const auto distance = shape_distance(kernel.space, space.problem(), winner.trial.problem);
    if (distance && !same_shape(winner.trial.problem, space.problem())) {
      candidates.emplace_back(*distance, &winner);
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  int passed_over = 0;
  std::string first_reason;
  std::optional<Plan> plan;
  for (const auto& [distance, winner] : candidates) {
    if (const auto why = why_unusable(space, winner->trial.config)) {
      first_reason = passed_over++ == 0 ? fmt::format("that of {}: {}", winner->trial.problem.text(), *why)
                                        : std::move(first_reason);
      continue;
    }
    const ToolkitRow& maker = maker_of(*winner, here);
    plan = plan_of(*winner, space, Provenance::nearest, maker,
                   fmt::format("the nearest tuned problem is {}{}", winner->trial.problem.text(),
                               toolkit_note(winner->toolkit, here, maker)));
    plan->distance = distance;
    break;
  }
  if (passed_over > 0) {
    notes = join(notes, fmt::format("{} nearer winner{} cannot be used, {}", passed_over, passed_over == 1 ? "" : "s",
                                    first_reason));
  }
  return plan;
}

// Why there is neither an exact nor a nearest winner.
std::string why_untuned(const TunedKernel& kernel) {
  if (!kernel.winners.empty()) {
    return fmt::format("none of the {} winners of kernel '{}' has these types and fixed dimensions and is valid here",
                       kernel.winners.size(), kernel.space.kernel);
  }
  if (kernel.refused.empty()) {
    return fmt::format("kernel '{}' is not tuned for this device", kernel.space.kernel);
  }
  const RefusedWinner& first = kernel.refused.front();
  return fmt::format("none of the {} winners of kernel '{}' can be used, such as that of {}: {}", kernel.refused.size(),
                     kernel.space.kernel, first.problem.text(), first.why);
}

// Orders by all that could tell two winners apart: what is chosen must not depend on the database's order.
bool precedes(const Winner& a, const Winner& b, const std::vector<ToolkitRow>& here) {
  const Problem& first = a.trial.problem;
  const Problem& second = b.trial.problem;
  if (first != second) {
    // Contents of the user's own come before drawn ones, the latest of them first.
    const auto place = [](const Winner& winner) {
      const Problem& problem = winner.trial.problem;
      return std::tuple(problem.dimensions, problem.types, problem.data.empty(), -winner.decided_unix_ms, problem.data);
    };
    return place(a) < place(b);
  }
  const auto rank = [&](const Winner& winner) {
    const double median_us = winner.trial.time ? winner.trial.time->median_us : 0;
    return std::tuple(nearness(winner.toolkit, here), median_us > 0 ? median_us : HUGE_VAL, winner.trial.config.text());
  };
  return rank(a) < rank(b);
}

// Of winners by one objective.
TunedKernel sort_out(Objective objective, const Space& space, const KernelSource& source, std::vector<Winner> winners,
                     const std::vector<ToolkitRow>& here) {
  TunedKernel kernel;
  kernel.objective = objective;
  for (Winner& winner : winners) {
    if (std::string why = why_refused(winner, space, source, here.front()); !why.empty()) {
      kernel.refused.push_back({std::move(winner.trial.problem), std::move(why)});
    } else {
      kernel.winners.push_back(std::move(winner));
    }
  }
  std::stable_sort(kernel.winners.begin(), kernel.winners.end(),
                   [&](const Winner& a, const Winner& b) { return precedes(a, b, here); });
  kernel.space = space;
  kernel.source = source;
  return kernel;
}

// What a later sweep's winner by time beats by the objective, too, does not take its place.
void refuse_outdated(TunedKernel& other, const std::vector<Winner>& by_time) {
  std::map<std::string, const Winner*> times;
  for (const Winner& winner : by_time) {
    times.emplace(winner.trial.problem.text(), &winner);  // the first is the one that is used
  }
  std::vector<Winner> kept;
  for (Winner& winner : other.winners) {
    const auto found = times.find(winner.trial.problem.text());
    auto why = found == times.end() ? std::nullopt : why_outdated(winner, *found->second);
    if (why) {
      other.refused.push_back({std::move(winner.trial.problem), std::move(*why)});
    } else {
      kept.push_back(std::move(winner));
    }
  }
  other.winners = std::move(kept);
}

}  // namespace

std::vector<std::string> missing_compilers(const std::vector<Winner>& winners, const std::vector<ToolkitRow>& here) {
  struct Fastest {
    const Winner* here = nullptr;
    const Winner* missing = nullptr;
  };
  std::map<std::string, Fastest> problems;
  for (const Winner& winner : winners) {
    if (!winner.trial.time || winner.toolkit.target != here.front().target ||
        winner.toolkit.driver_version != here.front().driver_version) {
      continue;
    }
    Fastest& fastest = problems[winner.trial.problem.text()];
    const Winner*& best = nearness(winner.toolkit, here) == Nearness::here ? fastest.here : fastest.missing;
    if (best == nullptr || winner.trial.time->median_us < best->trial.time->median_us) {
      best = &winner;
    }
  }
  struct Loss {
    const ToolkitRow* toolkit = nullptr;
    int problems = 0;
    int without_other = 0;
    double most = 0;
  };
  std::map<std::string, Loss> losses;
  for (const auto& [problem, fastest] : problems) {
    if (fastest.missing == nullptr ||
        (fastest.here != nullptr && !noticeably_faster(*fastest.missing->trial.time, *fastest.here->trial.time))) {
      continue;
    }
    const ToolkitRow& toolkit = fastest.missing->toolkit;
    Loss& loss = losses[toolkit.compiler + " " + toolkit.version];
    loss.toolkit = &toolkit;
    ++loss.problems;
    if (fastest.here == nullptr) {
      ++loss.without_other;
    } else {
      loss.most = std::max(loss.most, fastest.here->trial.time->median_us / fastest.missing->trial.time->median_us);
    }
  }
  std::vector<std::string> lines;
  for (const auto& [compiler, loss] : losses) {
    const std::string speed =
        loss.most > 0 ? fmt::format(", up to {:.2f} times as fast as what is used", loss.most) : "";
    const std::string only =
        loss.without_other > 0 ? fmt::format(", {} of which have no other", loss.without_other) : std::string();
    lines.push_back(fmt::format("{} is not here; it built the fastest winners of {}{}{}: {}", compiler,
                                counted(loss.problems, "problem"), only, speed,
                                how_to_get(loss.toolkit->compiler, loss.toolkit->version)));
  }
  return lines;
}

TunedKernel make_tuned_kernel(const Space& space, const KernelSource& source, std::vector<Winner> winners,
                              const std::vector<ToolkitRow>& here) {
  std::map<Objective, std::vector<Winner>> by_objective;
  for (Winner& winner : winners) {
    by_objective[winner.objective].push_back(std::move(winner));
  }
  TunedKernel kernel = sort_out(Objective::time, space, source, std::move(by_objective[Objective::time]), here);
  for (auto& [objective, same] : by_objective) {
    if (objective != Objective::time) {
      kernel.others.push_back(sort_out(objective, space, source, std::move(same), here));
      refuse_outdated(kernel.others.back(), kernel.winners);
    }
  }
  return kernel;
}

const TunedKernel* TunedKernel::by(Objective wanted) const {
  const auto found =
      std::find_if(others.begin(), others.end(), [&](const TunedKernel& other) { return other.objective == wanted; });
  return found == others.end() ? nullptr : &*found;
}

Plan make_plan(const TunedKernel& kernel, const std::vector<ToolkitRow>& here, const BoundSpace& space) {
  std::string notes;
  if (auto plan = plan_exact(kernel, here, space, notes)) {
    plan->reason = join(plan->reason, notes);
    return *plan;
  }
  if (auto plan = plan_nearest(kernel, here, space, notes)) {
    plan->reason = join(plan->reason, notes);
    return *plan;
  }
  Plan plan = plan_untuned(space, {}, join(why_untuned(kernel), notes));
  plan.toolkit = here.front();
  return plan;
}

std::optional<Plan> make_plan_by(Objective objective, const TunedKernel& kernel, const std::vector<ToolkitRow>& here,
                                 const Plan& by_time, const DeviceLimits& limits) {
  const TunedKernel* const other = kernel.by(objective);
  if (other == nullptr) {
    return std::nullopt;
  }
  Plan plan = make_plan(*other, here, BoundSpace(other->space, by_time.problem, limits));
  const bool tuned = plan.provenance == Provenance::exact || plan.provenance == Provenance::nearest;
  const bool as_near = plan.provenance == Provenance::exact || by_time.provenance == Provenance::default_config ||
                       by_time.provenance == Provenance::fallback ||
                       (by_time.provenance == Provenance::nearest && plan.distance <= by_time.distance);
  if (!tuned || !as_near) {
    return std::nullopt;
  }
  plan.reason = fmt::format("by {}: {}", phrase_of(objective), plan.reason);
  return plan;
}

Plan plan_untuned(const BoundSpace& space, std::span<const Config> failed, std::string reason, StopCheck check) {
  Plan plan;
  plan.problem = space.problem();
  plan.config = space.default_config();
  plan.reason = std::move(reason);
  const auto why = space.why_invalid(plan.config);
  if (!why && std::find(failed.begin(), failed.end(), plan.config) == failed.end()) {
    return plan;
  }
  if (why) {
    plan.reason = join(plan.reason, fmt::format("the default is invalid here: {}", *why));
  }
  auto config = closest_valid(space, failed, std::move(check));
  if (!config) {
    throw NoConfigError(fmt::format("found no valid configuration for {} on this device ({}); widen the values in {}",
                                    plan.problem.text(), plan.reason, space.space().file));
  }
  plan.config = std::move(*config);
  plan.provenance = Provenance::fallback;
  return plan;
}

Config untuned_config(const BoundSpace& space, StopCheck check) {
  return plan_untuned(space, {}, {}, std::move(check)).config;
}

}  // namespace pascaline
