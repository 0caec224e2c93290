#include <algorithm>
#include <string>
#include <vector>

#include "model/fusion/place_space.hpp"
#include "tuner/sweep/budget.hpp"
#include "tuner/sweep/device_plan.hpp"

// When a limited sweep turns to the places of a model, whose alternatives decide more than the last percent of a
// kernel: early, as soon as what they launch was looked at; in any case with the time that is kept for that; and once
// more at the end, with the winners that there are then.
namespace pascaline {
namespace {

// Of the time that there is at first, for the last finals of a model's places; and guesses of what these take.
constexpr double kMostPlacesShare = 0.4;
constexpr double kPlaceFinalsSeconds = 2;
constexpr double kOtherFinalsSeconds = 15;

}  // namespace

// What its alternatives launch that has no result of this run yet, nor code to get one by.
std::size_t DevicePlan::unready(const SweepTask& place) {
  return static_cast<std::size_t>(std::ranges::count_if(
      place.launched, [](const SweepTask* launched) { return launched->fresh() && launched->search.ready() == 0; }));
}

std::string DevicePlan::winners_launched(const SweepTask& place) {
  std::string winners;
  for (const SweepTask* launched : place.launched) {
    const bool is_default = !launched->winner || *launched->winner == launched->search.bound().default_config();
    winners += is_default ? "\n" : launched->winner->text() + "\n";
  }
  return winners;
}

// Of the plan's problems.
void DevicePlan::find_launched() {
  for (const auto& place : tasks_) {
    if (!place->kernel.is_place) {
      continue;
    }
    const std::vector<Problem>& launches = place->search.wanted().launches;
    const std::vector<std::string> kernels = kernels_of_place(place->kernel.space->kernel);
    for (const auto& task : tasks_) {
      const Problem& problem = task->search.wanted().problem;
      const bool is_launched = launches.empty() ? std::ranges::find(kernels, problem.kernel) != kernels.end()
                                                : std::ranges::find(launches, problem) != launches.end();
      if (is_launched && !task->kernel.is_place && !task->search.wanted().between) {
        place->launched.push_back(task.get());
      }
    }
  }
}

bool DevicePlan::kernels_untried() const {
  return std::ranges::any_of(tasks_, [](const auto& task) { return !task->kernel.is_place && task->fresh(); });
}

DevicePlan::KeptForPlaces DevicePlan::kept_for_places(double left_s) const {
  FirstPlaces first;
  int places = 0;
  int unfinished = 0;
  for (const auto& task : tasks_) {
    if (!task->kernel.is_place) {
      continue;
    }
    unfinished += task->over() ? 0 : 1;
    const double alternatives = static_cast<double>(task->kernel.space->parameters.front().values.size());
    if (task->fresh()) {
      first.alternatives += alternatives;
      ++places;
    } else if (task->first_look_s > 0) {
      first.slowest_s = std::max(first.slowest_s, task->first_look_s / alternatives);
    }
  }
  const double seconds = first_places_s(first, std::max(first_left_s_, left_s));
  return {seconds, places, places > 0 ? seconds / places : last_places_s() / std::max(1, unfinished)};
}

// Before all kernels (-2, -1) or behind them (4).
int DevicePlan::place_rank(const SweepTask& place, std::optional<double> left_s) const {
  constexpr int kFirstLook = -2;
  constexpr int kAgain = -1;
  constexpr int kBehindKernels = 4;
  const bool untried = kernels_untried();
  if (place.fresh()) {
    const bool launched_tried =
        std::ranges::none_of(place.launched, [](const SweepTask* launched) { return launched->fresh(); });
    const bool is_time = left_s && *left_s <= kept_for_places(*left_s).seconds;
    return !untried || launched_tried || is_time ? kFirstLook : kBehindKernels;
  }
  // Problems without a first look are not kept from it by what would be compared as before.
  const bool may_differ = !untried || !place.compared || place.launched_then != winners_launched(place);
  const bool at_the_end = left_s && *left_s <= last_places_s();
  return !place.came_again && may_differ && at_the_end ? kAgain : kBehindKernels;
}

// For the last finals of places, and for those of the problem that a device is at then.
double DevicePlan::last_places_s() const {
  double need_s = kOtherFinalsSeconds;
  for (const auto& task : tasks_) {
    need_s += task->kernel.is_place && !task->over() ? kPlaceFinalsSeconds + 3 * task->spent_s : 0;
  }
  return std::min(need_s, kMostPlacesShare * first_left_s_);
}

// While a device has a place, for which nothing is compiled: the defaults of what the next ones launch, so that these
// need not wait for the compiler where there was no time to look at their kernels.
void DevicePlan::fill_for_places() {
  bool takes_place = false;
  bool takes_kernel = false;
  for (const auto& task : tasks_) {
    takes_place = takes_place || (task->state.taken() && task->kernel.is_place);
    takes_kernel = takes_kernel || (task->state.taken() && !task->kernel.is_place);
  }
  if (!has_time_limit(options_) || !takes_place || takes_kernel) {
    return;
  }
  for (const auto& place : tasks_) {
    if (!place->kernel.is_place || !place->fresh()) {
      continue;
    }
    for (const SweepTask* launched : place->launched) {
      if (pool_.pending() >= 2 * pool_.workers()) {
        return;
      }
      if (launched->fresh()) {
        fill_with_default(*tasks_[launched->index]);
      }
    }
  }
}

}  // namespace pascaline
