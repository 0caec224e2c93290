#include <algorithm>
#include <string>
#include <vector>

#include "model/fusion/site_space.hpp"
#include "tuner/sweep/budget.hpp"
#include "tuner/sweep/device_plan.hpp"

// When a limited sweep turns to the sites of a model, whose alternatives decide more than the last percent of a
// kernel: early, as soon as what they launch was looked at; in any case with the time that is kept for that; and once
// more at the end, with the winners that there are then.
namespace pascaline {
namespace {

// Of the time that there is at first, for the last finals of a model's sites; and guesses of what these take.
constexpr double kMaxSitesShare = 0.4;
constexpr double kSiteFinalsSeconds = 2;
constexpr double kOtherFinalsSeconds = 15;

}  // namespace

// What its alternatives launch that has no result of this run yet, nor code to get one by.
std::size_t DevicePlan::unready(const SweepTask& site) {
  return static_cast<std::size_t>(std::ranges::count_if(
      site.launched, [](const SweepTask* launched) { return launched->fresh() && launched->search.ready() == 0; }));
}

std::string DevicePlan::winners_launched(const SweepTask& site) {
  std::string winners;
  for (const SweepTask* launched : site.launched) {
    const bool is_default = !launched->winner || *launched->winner == launched->search.bound().default_config();
    winners += is_default ? "\n" : launched->winner->text() + "\n";
  }
  return winners;
}

// Of the plan's problems.
void DevicePlan::find_launched() {
  for (const auto& site : tasks_) {
    if (!site->kernel.is_site) {
      continue;
    }
    const std::vector<Problem>& launches = site->search.wanted().launches;
    const std::vector<std::string> kernels = kernels_of_site(site->kernel.space->kernel);
    for (const auto& task : tasks_) {
      const Problem& problem = task->search.wanted().problem;
      const bool is_launched = launches.empty() ? std::ranges::find(kernels, problem.kernel) != kernels.end()
                                                : std::ranges::find(launches, problem) != launches.end();
      if (is_launched && !task->kernel.is_site && !task->search.wanted().between) {
        site->launched.push_back(task.get());
      }
    }
  }
}

bool DevicePlan::kernels_untried() const {
  return std::ranges::any_of(tasks_, [](const auto& task) { return !task->kernel.is_site && task->fresh(); });
}

DevicePlan::KeptForSites DevicePlan::kept_for_sites(double left_s) const {
  FirstSites first;
  int sites = 0;
  int unfinished = 0;
  for (const auto& task : tasks_) {
    if (!task->kernel.is_site) {
      continue;
    }
    unfinished += task->over() ? 0 : 1;
    const double alternatives = static_cast<double>(task->kernel.space->parameters.front().values.size());
    if (task->fresh()) {
      first.alternatives += alternatives;
      ++sites;
    } else if (task->first_look_s > 0) {
      first.slowest_s = std::max(first.slowest_s, task->first_look_s / alternatives);
    }
  }
  const double seconds = first_sites_s(first, std::max(first_left_s_, left_s));
  return {seconds, sites, sites > 0 ? seconds / sites : last_sites_s() / std::max(1, unfinished)};
}

// Before all kernels (-2, -1) or behind them (4).
int DevicePlan::site_rank(const SweepTask& site, std::optional<double> left_s) const {
  constexpr int kFirstLook = -2;
  constexpr int kAgain = -1;
  constexpr int kBehindKernels = 4;
  const bool untried = kernels_untried();
  if (site.fresh()) {
    const bool launched_tried =
        std::ranges::none_of(site.launched, [](const SweepTask* launched) { return launched->fresh(); });
    const bool is_time = left_s && *left_s <= kept_for_sites(*left_s).seconds;
    return !untried || launched_tried || is_time ? kFirstLook : kBehindKernels;
  }
  // Problems without a first look are not kept from it by what would be compared as before.
  const bool may_differ = !untried || !site.compared || site.launched_then != winners_launched(site);
  const bool at_the_end = left_s && *left_s <= last_sites_s();
  return !site.came_again && may_differ && at_the_end ? kAgain : kBehindKernels;
}

// For the last finals of sites, and for those of the problem that a device is at then.
double DevicePlan::last_sites_s() const {
  double need_s = kOtherFinalsSeconds;
  for (const auto& task : tasks_) {
    need_s += task->kernel.is_site && !task->over() ? kSiteFinalsSeconds + 3 * task->spent_s : 0;
  }
  return std::min(need_s, kMaxSitesShare * first_left_s_);
}

// While a device has a site, for which nothing is compiled: the defaults of what the next ones launch, so that these
// need not wait for the compiler where there was no time to look at their kernels.
void DevicePlan::fill_for_sites() {
  bool takes_site = false;
  bool takes_kernel = false;
  for (const auto& task : tasks_) {
    takes_site = takes_site || (task->state.taken() && task->kernel.is_site);
    takes_kernel = takes_kernel || (task->state.taken() && !task->kernel.is_site);
  }
  if (!has_time_limit(options_) || !takes_site || takes_kernel) {
    return;
  }
  for (const auto& site : tasks_) {
    if (!site->kernel.is_site || !site->fresh()) {
      continue;
    }
    for (const SweepTask* launched : site->launched) {
      if (builder_->pending() >= 2 * builder_->workers()) {
        return;
      }
      if (launched->fresh()) {
        fill_with_first(*tasks_[launched->index]);
      }
    }
  }
}

}  // namespace pascaline
