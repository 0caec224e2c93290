#include "model/fusion/fusion_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/device/device_rates.hpp"
#include "core/error.hpp"
#include "core/space/shape_distance.hpp"
#include "core/util/stop_check.hpp"
#include "model/fusion/site_space.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline {
namespace {

std::optional<std::size_t> candidate_named(std::span<const SiteCandidate> candidates, std::string_view name) {
  const auto found = std::ranges::find_if(candidates, [&](const SiteCandidate& one) { return one.name == name; });
  return found == candidates.end() ? std::nullopt : std::optional<std::size_t>(found - candidates.begin());
}

double estimated_launches(const SiteCandidate& candidate) {
  return static_cast<double>(candidate.launches.size()) + candidate.extra_launches;
}

// By how much longer what an alternative launches takes than that of another, where that is no matter of chance, for it
// to be left out of an estimate: kernels one by one, with cold caches, are not the whole.
constexpr double kClearlyLonger = 1.05;

// Of a launch, where a table has it.
std::optional<double> launch_us(const Dispatcher* dispatcher) {
  if (dispatcher == nullptr || dispatcher->device().info().kind != DeviceKind::cuda) {
    return std::nullopt;
  }
  const DeviceInfo& info = dispatcher->device().info();
  const auto rates = typical_rates(device_row(info).compute_capability, info.limits);
  return rates ? std::optional(rates->launch_us) : std::nullopt;
}

}  // namespace

std::string_view name_of(ChoiceOrigin origin) noexcept {
  switch (origin) {
    case ChoiceOrigin::only:
      return "only";
    case ChoiceOrigin::off:
      return "off";
    case ChoiceOrigin::file:
      return "file";
    case ChoiceOrigin::exact:
      return "exact";
    case ChoiceOrigin::nearest:
      return "nearest";
    case ChoiceOrigin::estimated:
      return "estimated";
    case ChoiceOrigin::refused:
      return "refused";
  }
  return "";
}

FusionChooser::FusionChooser(Fusion fusion, FusionFile file, const Dispatcher* dispatcher)
    : fusion_(fusion), file_(std::move(file)), dispatcher_(dispatcher) {}

// The entry of the nearest sizes of this site.
std::optional<SiteChoice> FusionChooser::from_file(const Problem& site,
                                                   std::span<const SiteCandidate> candidates) const {
  const FusionFile::Entry* best = nullptr;
  double best_distance = std::numeric_limits<double>::infinity();
  for (const FusionFile::Entry& entry : file_.sites) {
    if (!same_but_for_sizes(entry.site, site)) {
      continue;
    }
    const double distance = shape_distance(site_space(site.kernel), entry.site, site).value_or(best_distance);
    if (distance < best_distance) {
      best = &entry;
      best_distance = distance;
    }
  }
  if (best == nullptr) {
    return std::nullopt;
  }
  const auto candidate = candidate_named(candidates, best->alternative);
  if (!candidate) {
    return SiteChoice{0, ChoiceOrigin::refused,
                      fmt::format("{} says '{}' for {}, which does not fit these sizes", file_.name, best->alternative,
                                  best->site.text()),
                      std::nullopt};
  }
  return SiteChoice{*candidate, ChoiceOrigin::file,
                    best->site == site ? fmt::format("{} says so", file_.name)
                                       : fmt::format("{} says so for {}", file_.name, best->site.text()),
                    std::nullopt};
}

std::optional<SiteChoice> FusionChooser::from_winners(const SiteKey& key, const Problem& site,
                                                      std::span<const SiteCandidate> candidates) {
  if (dispatcher_ == nullptr || !why_no_winners_.empty()) {
    return std::nullopt;
  }
  try {
    if (spaces_.find(site.kernel) == spaces_.end()) {
      const Space& space = spaces_.emplace(site.kernel, site_space(site.kernel)).first->second;
      dispatcher_->add_planned(key.kernel(), space, site_source(site.kernel, dispatcher_->kernels_folder()));
    }
    const Plan plan = dispatcher_->plan(site);
    if (plan.provenance != Provenance::exact && plan.provenance != Provenance::nearest) {
      return std::nullopt;
    }
    const std::string name = alternative_of(plan.config);
    const auto candidate = candidate_named(candidates, name);
    if (!candidate) {
      return SiteChoice{0, ChoiceOrigin::refused,
                        fmt::format("'{}' won for {}, but does not fit here", name,
                                    plan.tuned_for ? plan.tuned_for->text() : site.text()),
                        std::nullopt};
    }
    return SiteChoice{*candidate, plan.provenance == Provenance::exact ? ChoiceOrigin::exact : ChoiceOrigin::nearest,
                      plan.reason, plan.expected};
  } catch (const StoppedError&) {
    throw;
  } catch (const Error& error) {
    why_no_winners_ = error.what();  // kernels' files are missing, or damaged: then nothing of them can be tuned either
    return std::nullopt;
  }
}

// Of all that it launches what the winner took, but for launching; nothing unless each was measured in just that shape.
std::optional<FusionChooser::WorkTime> FusionChooser::work_of(const SiteCandidate& candidate) const {
  if (dispatcher_ == nullptr || !why_no_winners_.empty()) {
    return std::nullopt;
  }
  const double launching_us = launch_us(dispatcher_).value_or(0);
  WorkTime work;
  for (const Executor::UnrunLaunch& launch : candidate.launches) {
    try {
      const Plan plan = dispatcher_->plan(launch.problem.named());
      if (plan.provenance != Provenance::exact || !plan.expected) {
        return std::nullopt;
      }
      work.low_us += std::max(0.0, plan.expected->low_us - launching_us);
      work.median_us += std::max(0.0, plan.expected->median_us - launching_us);
      work.high_us += std::max(0.0, plan.expected->high_us - launching_us);
    } catch (const StoppedError&) {
      throw;
    } catch (const Error&) {
      return std::nullopt;  // what is wrong with it is told where it is to be launched
    }
  }
  return work;
}

// Launches are all that is known to cost something everywhere, and where its kernels were tuned what these took: an
// alternative whose kernels a sweep has found good configurations for can be several times as fast as one for which it
// had no time, on any device. Of equal ones the first counts.
SiteChoice FusionChooser::estimated(std::span<const SiteCandidate> candidates, const CanRun& can_run) const {
  std::vector<std::optional<WorkTime>> work;
  std::optional<WorkTime> shortest;
  for (const SiteCandidate& candidate : candidates) {
    work.push_back(work_of(candidate));
    if (work.back() && (!shortest || work.back()->median_us < shortest->median_us)) {
      shortest = work.back();
    }
  }
  const auto is_longer = [&](std::size_t i) { return work[i] && work[i]->low_us > kClearlyLonger * shortest->high_us; };
  std::size_t best = 0;
  std::size_t fewest = 0;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    const auto cost = [&](std::size_t of) { return std::pair(is_longer(of), estimated_launches(candidates[of])); };
    if (cost(i) < cost(best) && (!can_run || can_run(candidates[i]))) {
      best = i;
    }
    fewest = estimated_launches(candidates[i]) < estimated_launches(candidates[fewest]) ? i : fewest;
  }
  SiteChoice choice{best, ChoiceOrigin::estimated, "", std::nullopt};
  const std::string why = why_no_winners_.empty()
                              ? "an estimate, nothing was measured"
                              : fmt::format("an estimate, as what was measured cannot be read ({})", why_no_winners_);
  const double saved = estimated_launches(candidates.front()) - estimated_launches(candidates[best]);
  if (best != fewest && is_longer(fewest) && work[best]) {
    choice.reason = fmt::format(
        "an estimate, only its kernels were measured: what it launches takes {:.2f} us one by one, that of '{}' {:.2f} "
        "us",
        work[best]->median_us, candidates[fewest].name, work[fewest]->median_us);
  } else if (best == 0) {
    choice.reason = why + ": no other saves launches that are worth what it does more";
  } else {
    const auto each_us = launch_us(dispatcher_);
    choice.reason =
        fmt::format("{}: it saves {}{}", why, saved < 1.5 ? "a launch" : fmt::format("{:.0f} launches", saved),
                    each_us ? fmt::format(" of about {:.0f} us", *each_us) : std::string());
  }
  return choice;
}

SiteChoice FusionChooser::choose(const SiteKey& key, std::span<const SiteCandidate> candidates, const CanRun& can_run) {
  if (fusion_ == Fusion::off) {
    return {0, ChoiceOrigin::off, "--fusion off", std::nullopt};
  }
  if (candidates.size() < 2) {
    return {0, ChoiceOrigin::only, "there is no other way here", std::nullopt};
  }
  const Problem site = key.named();
  std::optional<SiteChoice> choice = from_file(site, candidates);
  if (!choice) {
    choice = from_winners(key, site, candidates);
  }
  if (!choice) {
    return estimated(candidates, can_run);
  }
  if (choice->candidate != 0 && can_run && !can_run(candidates[choice->candidate])) {
    return {0, ChoiceOrigin::refused, fmt::format("'{}' cannot be built here", candidates[choice->candidate].name),
            std::nullopt};
  }
  return *choice;
}

}  // namespace pascaline
