#include "tuner/sweep/agenda.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pascaline {
namespace {

// Kernels may exceed the best rates so far by this factor. It is a guess, which only affects the order of problems.
constexpr double kHeadroom = 1.1;
// An empty launch takes at most this long. If the shortest kernel takes longer, the launch time is unknown.
constexpr double kLongestLaunchUs = 8;
// The usual doubling weighs as much as this many trials of the search itself.
constexpr double kUsualTrials = 16;
// Guesses of the logarithm of a doubling's speedup, in a first look and later.
constexpr double kLookSaves = 0.2;
constexpr double kLaterSaves = 0.06;
// The guesses weigh as much as this many doublings.
constexpr double kGuessWeighs = 3;
// A doubling of another kernel weighs this much of a doubling of the same kernel.
constexpr double kOtherKindWeighs = 0.1;
// The default and the portfolio carry knowledge from before the search: they count as this many extra trials.
constexpr double kTrialsBefore = 1;
constexpr int kMaxTrialsOfAction = 128;
constexpr double kFinalsOfAction = 0.5;  // expected time of the finals, relative to that of the trials
// Fitted to the defaults of the tiny model on two processors: 90 % are within a factor of 10.
constexpr double kEmulatedLaunchUs = 20;
constexpr double kEmulatedThreadUs = 0.7;
constexpr double kEmulatedFlopsPerUs = 200;
constexpr double kEmulatedBytesPerUs = 200;

double room_left(const Outlook& problem, const AttainedRates& rates) {
  const double by_flops = rates.flops_per_us > 0 ? problem.flops / rates.flops_per_us : 0;
  const double by_bytes = rates.bytes_per_us > 0 ? problem.bytes / rates.bytes_per_us : 0;
  const double least_us = std::max({by_flops, by_bytes, rates.launch_us}) / kHeadroom;
  return std::clamp(1 - least_us / problem.time_us, 0.0, 1.0);
}

}  // namespace

double least_time_us(double flops, double bytes, const std::optional<DeviceRates>& rates, double threads) {
  return rates ? rates->launch_us + std::max(flops / (1e3 * rates->peak_gflops()), bytes / (1e3 * rates->memory_gbps))
               : kEmulatedLaunchUs + kEmulatedThreadUs * threads +
                     std::max(flops / kEmulatedFlopsPerUs, bytes / kEmulatedBytesPerUs);
}

AttainedRates attained_rates(std::span<const Outlook> problems, const std::optional<DeviceRates>& of_device) {
  AttainedRates rates;
  rates.bytes_per_us = of_device ? 1e3 * of_device->memory_gbps : 0;
  double shortest_us = std::numeric_limits<double>::infinity();
  for (const Outlook& problem : problems) {
    if (problem.measured && problem.time_us > 0) {
      rates.flops_per_us = std::max(rates.flops_per_us, problem.flops / problem.time_us);
      rates.bytes_per_us = std::max(rates.bytes_per_us, problem.bytes / problem.time_us);
      shortest_us = std::min(shortest_us, problem.time_us);
    }
  }
  rates.launch_us = shortest_us <= kLongestLaunchUs ? shortest_us : 0;
  return rates;
}

void DoublingRecord::add(const void* kind, double first_us, double look_us, double last_us, int trials) {
  if (!(first_us > 0 && look_us > 0 && last_us > 0)) {  // what was usable may fail in finals
    return;
  }
  const double looks = std::min(trials, kTrialsOfAction);
  const Saved look{std::max(0.0, std::log(first_us / look_us)), std::log2(looks)};
  const Saved later{std::max(0.0, std::log(look_us / last_us)), std::log2(trials / looks)};
  for (Phases* const phases : {&by_kind_[kind], &all_}) {
    phases->look.log_ratio += look.log_ratio;
    phases->look.doublings += look.doublings;
    phases->later.log_ratio += later.log_ratio;
    phases->later.doublings += later.doublings;
  }
}

double DoublingRecord::usual(const void* kind, int trials) const {
  const bool is_look = trials < kTrialsOfAction;
  const Saved Phases::*phase = is_look ? &Phases::look : &Phases::later;
  const auto found = by_kind_.find(kind);
  const Saved own = found != by_kind_.end() ? found->second.*phase : Saved{};
  const Saved& all = all_.*phase;
  const double log_ratio = kGuessWeighs * (is_look ? kLookSaves : kLaterSaves) +
                           kOtherKindWeighs * (all.log_ratio - own.log_ratio) + own.log_ratio;
  const double doublings = kGuessWeighs + kOtherKindWeighs * (all.doublings - own.doublings) + own.doublings;
  return 1 - std::exp(-log_ratio / doublings);
}

SearchAction next_search(const Outlook& problem, const AttainedRates& rates) {
  SearchAction action;
  action.trials = std::clamp(problem.trials / 2, kTrialsOfAction, kMaxTrialsOfAction);
  const int unbuilt = std::max(0, action.trials - problem.ready);
  const double builds_s = unbuilt > 0 ? problem.wait_s + unbuilt * problem.build_s : 0;
  const double trials_s = std::max(action.trials * problem.trial_s, builds_s);
  action.seconds = std::max(1e-3, problem.preparation_s + (1 + kFinalsOfAction) * trials_s);
  if (!(problem.time_us > 0)) {
    return action;
  }
  const double known = problem.last_doubling ? problem.trials : 0;
  const double improvement =
      (problem.last_doubling.value_or(0) * known + problem.usual_doubling * kUsualTrials) / (known + kUsualTrials);
  const double doublings = std::log2(1 + action.trials / (problem.trials + kTrialsBefore));
  const double share = 1 - std::pow(1 - std::min(improvement, 0.99), doublings);
  const double most = problem.measured ? room_left(problem, rates) : 1;  // the rates limit only measured times
  action.saved_us = problem.calls * problem.time_us * std::min(share, most);
  return action;
}

}  // namespace pascaline
