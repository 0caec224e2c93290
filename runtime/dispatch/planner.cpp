#include "runtime/dispatch/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/error.hpp"
#include "core/space/shape_distance.hpp"
#include "runtime/dispatch/closest_valid.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline {
namespace {

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

std::string toolkit_note(const ToolkitRow& then, const ToolkitRow& today) {
  return then == today ? "" : fmt::format(", with {} while {} is in use", describe(then), describe(today));
}

Plan plan_of(const Winner& winner, const BoundSpace& space, Provenance provenance, std::string reason) {
  Plan plan;
  plan.problem = space.problem();
  plan.config = winner.trial.config;
  plan.provenance = provenance;
  plan.reason = std::move(reason);
  plan.tuned_for = winner.trial.problem;
  plan.confidence = winner.confidence;
  return plan;
}

// The exact winner's plan; if there is none to use, nothing, and `notes` says why where a winner was passed over.
std::optional<Plan> plan_exact(const TunedKernel& kernel, const ToolkitRow& today, const BoundSpace& space,
                               std::string& notes) {
  for (const RefusedWinner& refused : kernel.refused) {
    if (refused.problem == space.problem()) {
      notes = join(notes, fmt::format("its winner is not used: {}", refused.why));
    }
  }
  for (const Winner& winner : kernel.winners) {
    if (winner.trial.problem != space.problem()) {
      continue;
    }
    if (const auto why = why_unusable(space, winner.trial.config)) {
      notes = join(notes, fmt::format("its winner is not used: {}", *why));
      continue;
    }
    std::string reason = "tuned on this kind of device" + toolkit_note(winner.toolkit, today);
    Plan plan = plan_of(winner, space, Provenance::exact, std::move(reason));
    plan.expected = winner.trial.time;
    return plan;
  }
  return std::nullopt;
}

std::optional<Plan> plan_nearest(const TunedKernel& kernel, const ToolkitRow& today, const BoundSpace& space,
                                 std::string& notes) {
  std::vector<std::pair<double, const Winner*>> candidates;
  for (const Winner& winner : kernel.winners) {
    const auto distance = shape_distance(kernel.space, space.problem(), winner.trial.problem);
    if (distance && winner.trial.problem != space.problem()) {
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
    plan = plan_of(*winner, space, Provenance::nearest,
                   fmt::format("the nearest tuned problem is {}{}", winner->trial.problem.text(),
                               toolkit_note(winner->toolkit, today)));
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
bool precedes(const Winner& a, const Winner& b, const ToolkitRow& today) {
  const Problem& first = a.trial.problem;
  const Problem& second = b.trial.problem;
  if (first != second) {
    return std::tie(first.dimensions, first.types) < std::tie(second.dimensions, second.types);
  }
  const auto rank = [&](const Winner& winner) {
    const double median_us = winner.trial.time ? winner.trial.time->median_us : 0;
    return std::tuple(winner.toolkit != today, median_us > 0 ? median_us : HUGE_VAL, winner.trial.config.text());
  };
  return rank(a) < rank(b);
}

}  // namespace

TunedKernel make_tuned_kernel(Space space, KernelSource source, std::vector<Winner> winners, const ToolkitRow& today) {
  TunedKernel kernel;
  for (Winner& winner : winners) {
    if (std::string why = why_refused(winner, space, source, today); !why.empty()) {
      kernel.refused.push_back({std::move(winner.trial.problem), std::move(why)});
    } else {
      kernel.winners.push_back(std::move(winner));
    }
  }
  std::stable_sort(kernel.winners.begin(), kernel.winners.end(),
                   [&](const Winner& a, const Winner& b) { return precedes(a, b, today); });
  kernel.space = std::move(space);
  kernel.source = std::move(source);
  return kernel;
}

Plan make_plan(const TunedKernel& kernel, const ToolkitRow& today, const BoundSpace& space) {
  std::string notes;
  if (auto plan = plan_exact(kernel, today, space, notes)) {
    plan->reason = join(plan->reason, notes);
    return *plan;
  }
  if (auto plan = plan_nearest(kernel, today, space, notes)) {
    plan->reason = join(plan->reason, notes);
    return *plan;
  }
  return plan_untuned(space, {}, join(why_untuned(kernel), notes));
}

Plan plan_untuned(const BoundSpace& space, std::span<const Config> failed, std::string reason) {
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
  auto config = closest_valid(space, failed);
  if (!config) {
    throw Error(fmt::format("found no valid configuration for {} on this device ({}); widen the values in {}",
                            plan.problem.text(), plan.reason, space.space().file));
  }
  plan.config = std::move(*config);
  plan.provenance = Provenance::fallback;
  return plan;
}

}  // namespace pascaline
