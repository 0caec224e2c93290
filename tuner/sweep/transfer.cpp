#include "tuner/sweep/transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/search/transfer.hpp"
#include "tuner/sweep/other_devices.hpp"
#include "tuner/sweep/other_kernels.hpp"
#include "tuner/sweep/other_types.hpp"

namespace pascaline {
namespace {

constexpr std::string_view kSearcherWithPriors = "auto";

bool has_all_values(const Space& space, const Config& config) {
  try {
    std::ignore = space.indices_of(config);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// A device's own trials of the shape, whatever their source and toolkit, make what others measured superfluous.
bool knows_enough(const SweepTask& task) {
  return std::any_of(task.tunable.measured.begin(), task.tunable.measured.end(), [&](const Store::Measured& key) {
    return key.problem_id == task.rows.contexts.front().problem && key.times_us.size() >= kMinRelated;
  });
}

struct OtherProblem {
  std::string device;
  std::string measured;
  bool other_types = false;
};

TakenOver& taken_over_entry_of(SweepTask& task, const OtherProblem& other) {
  std::vector<TakenOver>& taken_over = task.transfer.taken_over;
  const auto found = std::find_if(taken_over.begin(), taken_over.end(), [&](const TakenOver& one) {
    return one.other_types == other.other_types && one.device == other.device && one.measured == other.measured;
  });
  if (found != taken_over.end()) {
    return *found;
  }
  return taken_over.emplace_back(
      TakenOver{task.search.wanted().problem.text(), other.device, other.measured, 0, false, other.other_types});
}

// Has up to `most` different winners whose values the search's space has tried first, and marks their entries in
// `taken_over`.
void try_first(SweepTask& task, const std::vector<const Winner*>& winners, std::size_t most, bool other_types) {
  std::vector<Config> configs;
  std::vector<const Winner*> of;
  for (const Winner* winner : winners) {
    Config here = task.tunable.compilers->with(winner->trial.config, 0);
    const bool is_new = std::find(configs.begin(), configs.end(), here) == configs.end();
    if (is_new && configs.size() < most && has_all_values(*task.tunable.space, here)) {
      configs.push_back(std::move(here));
      of.push_back(winner);
    }
  }
  const std::vector<bool> first = task.search.begin_with_winners(configs);
  for (std::size_t i = 0; i < configs.size(); ++i) {
    if (first[i]) {
      taken_over_entry_of(task, {of[i]->device.name, of[i]->trial.problem.text(), other_types}).winner = true;
    }
  }
}

// The problems of the run that may learn from each other although their element types differ.
bool differs_in_types(const SweepTask& a, const SweepTask& b) {
  const Problem& problem = a.search.wanted().problem;
  const Problem& other = b.search.wanted().problem;
  return &a.tunable == &b.tunable && problem.types != other.types &&
         transfer_octaves(*a.tunable.space, problem, other).has_value();
}

bool is_of_other_kernel(const SweepTask& a, const SweepTask& b) {
  return &a.tunable != &b.tunable && b.tunable.is_lasting() &&
         kernel_octaves(*a.tunable.space, a.search.wanted().problem, *b.tunable.space, b.search.wanted().problem);
}

std::string begins_with(std::size_t problems, std::size_t all, const std::string& what) {
  return fmt::format("the {} of {} of {} {} with what {}", problems == 1 ? "search" : "searches", problems,
                     counted(all, "problem"), problems == 1 ? "begins" : "begin", what);
}

}  // namespace

// For a static model; nothing of other devices than GPUs.
std::optional<DeviceRates> Transfer::device_rates() const {
  std::optional<DeviceRates> rates;
  if (info_.kind == DeviceKind::cuda) {
    rates = typical_rates(device_row(info_).compute_capability, info_.limits);
    if (rates) {
      use_measured(*rates, measured_rates_);
    }
  }
  return rates;
}

// Joins what the run's compilers measured of one problem; trials by other compilers count as if the first had compiled
// them. `other_types` selects problems with other element types than the task's, or else those with the same.
std::vector<RelatedProblem> Transfer::measured_before(const SweepTask& task, bool other_types) const {
  std::vector<RelatedProblem> related;
  std::map<std::int64_t, std::size_t> own;  // by problem
  for (const Store::Measured& key : task.tunable.measured) {
    if ((key.problem.types != task.search.wanted().problem.types) != other_types) {
      continue;
    }
    const auto toolkit = std::find(toolkits_.begin(), toolkits_.end(), key.toolkit);
    const bool same_version = toolkit != toolkits_.end() && key.kernel == task.tunable.context.kernel;
    const bool of_run = same_version && std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& other) {
                          return other->rows.contexts.front().problem == key.problem_id;
                        });
    if (of_run) {  // what the run's own problems recalled is among their times
      continue;
    }
    const auto place = same_version ? own.emplace(key.problem_id, related.size()).first->second : related.size();
    if (place == related.size()) {
      related.push_back({key.problem, {}, 0});
    }
    const auto compiler = toolkit == toolkits_.end() ? 0 : static_cast<std::size_t>(toolkit - toolkits_.begin());
    for (const auto& [config, time_us] : key.times_us) {
      related[place].times_us.emplace_back(task.tunable.compilers->with(config, compiler), time_us);
    }
  }
  return related;
}

// From other keys in the database, from the other problems of this run, from other element types and other devices.
std::vector<Prior> Transfer::known_before_search(const SweepTask& task, const SearchDomain& domain) const {
  std::vector<RelatedProblem> related;
  for (const auto& other : tasks_) {
    const bool same_types = other->search.wanted().problem.types == task.search.wanted().problem.types;
    if (other.get() != &task && &other->tunable == &task.tunable && same_types) {
      related.push_back({other->search.wanted().problem, other->search.times_us(), 0});
    }
  }
  for (RelatedProblem& before : measured_before(task, false)) {
    related.push_back(std::move(before));
  }
  for (RelatedProblem& other : of_other_types(task)) {
    related.push_back(std::move(other));
  }
  related.insert(related.end(), task.transfer.elsewhere.begin(), task.transfer.elsewhere.end());
  return transfer_priors(domain, device_rates(), related, options_.search.seed);
}

// Decides whether its search begins with measurements from elsewhere.
bool Transfer::takes_over(const SweepTask& task) const {
  return options_.search.searcher == kSearcherWithPriors && task.tunable.is_lasting() && !task.search.wanted().between;
}

void Transfer::recall_elsewhere(SweepRecorder& recorder, SweepTask& task) const {
  if (takes_over(task)) {
    take_over_trials(recorder, task);
    take_over_winners(task);
  }
}

void Transfer::take_over_trials(SweepRecorder& recorder, SweepTask& task) const {
  if (knows_enough(task)) {
    return;
  }
  const Problem& problem = task.search.wanted().problem;
  const Space& space = *task.tunable.space;
  for (const NearElsewhere& near :
       nearest_elsewhere(space, problem, device_row(info_), task.tunable.measured_elsewhere)) {
    if (task.transfer.elsewhere.size() == kMaxOtherDevices) {
      return;
    }
    RelatedProblem related{near.key->problem, {}, near.device_octaves};
    for (auto& [config, time_us] : recorder.persist([&](Store& store) { return store.times_us(*near.key); })) {
      Config here = task.tunable.compilers->with(config, 0);
      if (has_all_values(space, here)) {
        related.times_us.emplace_back(std::move(here), time_us);
      }
    }
    const std::size_t trials = related.times_us.size();
    if (trials < kMinRelated) {
      continue;
    }
    related.times_us = thinned_times(std::move(related.times_us));
    taken_over_entry_of(task, {near.key->device.name, near.key->problem.text(), false}).trials +=
        static_cast<std::int64_t>(trials);
    task.transfer.elsewhere.push_back(std::move(related));
  }
}

void Transfer::take_over_winners(SweepTask& task) const {
  const std::string problem = task.search.wanted().problem.text();
  try_first(task, winners_elsewhere(problem, device_row(info_), task.tunable.winners), kMaxOtherDevices, false);
}

// Takes over what was measured before the run. Called once all tasks exist, because it leaves out their own
// measurements, which they share directly.
void Transfer::recall_other_types(SweepTask& task) const {
  if (!takes_over(task)) {
    return;
  }
  const DeviceRow device = device_row(info_);
  if (!knows_enough(task)) {
    task.transfer.other_types = nearest_of_other_types(task.search.bound(), measured_before(task, true));
    for (RelatedProblem& other : task.transfer.other_types) {
      taken_over_entry_of(task, {device.name, other.problem.text(), true}).trials +=
          static_cast<std::int64_t>(other.times_us.size());
      other.times_us = thinned_times(std::move(other.times_us));
    }
  }
  const auto winners =
      winners_of_other_types(*task.tunable.space, task.search.wanted().problem, device, task.tunable.winners);
  try_first(task, winners, kMaxOtherTypes, true);
}

// The nearest problems of other element types, of those before the run and of the run's own; and the run's of other
// kernels.
std::vector<RelatedProblem> Transfer::of_other_types(const SweepTask& task) const {
  if (!takes_over(task) || knows_enough(task)) {
    return {};
  }
  std::vector<RelatedProblem> related;
  for (const auto& other : tasks_) {
    if (differs_in_types(task, *other)) {
      related.push_back({other->search.wanted().problem, other->search.times_us(), 0});
    }
  }
  related.insert(related.end(), task.transfer.other_types.begin(), task.transfer.other_types.end());
  related = nearest_of_other_types(task.search.bound(), related);
  for (const auto& other : tasks_) {
    if (!is_of_other_kernel(task, *other)) {
      continue;
    }
    RelatedProblem measured{other->search.wanted().problem, other->search.times_us()};
    if (auto mapped = of_other_kernel(task.search.bound(), *other->tunable.space, measured)) {
      related.push_back(std::move(*mapped));
    }
  }
  return related;
}

// Asks as soon as another problem of the run with this shape and other element types has a winner, or enough trials for
// its best to be worth one.
void Transfer::begin_with_types_of_run(SweepTask& task) const {
  if (task.transfer.types_of_run_asked || task.search.spent() || !takes_over(task)) {
    return;
  }
  std::vector<std::pair<double, Config>> winners;
  for (const auto& other : tasks_) {
    const bool known = other->result.winner || other->search.usable() >= kMinRelated;
    const Problem& problem = other->search.wanted().problem;
    if (known && differs_in_types(task, *other) && problem.dimensions == task.search.wanted().problem.dimensions) {
      winners.emplace_back(*transfer_octaves(*task.tunable.space, task.search.wanted().problem, problem),
                           other->result.winner ? *other->result.winner : other->search.best());
    }
  }
  std::stable_sort(winners.begin(), winners.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Config> configs;
  for (const auto& [octaves, winner] : winners) {
    if (configs.size() < kMaxOtherTypes && std::find(configs.begin(), configs.end(), winner) == configs.end()) {
      configs.push_back(winner);
    }
  }
  task.transfer.types_of_run_asked = !configs.empty();
  std::ignore = task.search.begin_with_winners(configs);
}

std::vector<TakenOver> Transfer::taken_over() const {
  std::vector<TakenOver> all;
  for (const auto& task : tasks_) {
    all.insert(all.end(), task->transfer.taken_over.begin(), task->transfer.taken_over.end());
  }
  return all;
}

std::vector<std::string> Transfer::taken_over_lines(std::size_t problems) const {
  struct Sum {
    std::int64_t trials = 0;
    std::set<std::string> problems;
    int winners = 0;
  };
  std::map<std::pair<bool, std::string>, Sum> sums;
  for (const TakenOver& one : taken_over()) {
    Sum& sum = sums[{one.other_types, one.device}];
    sum.trials += one.trials;
    sum.winners += one.winner ? 1 : 0;
    sum.problems.insert(one.problem);
  }
  std::vector<std::string> lines;
  for (const auto& [of, sum] : sums) {
    const std::string what = of.second + (of.first ? " measured of other element types" : " measured");
    lines.push_back(fmt::format("{}: {}, {} to be tried first", begins_with(sum.problems.size(), problems, what),
                                counted(sum.trials, "trial"), counted(sum.winners, "winner")));
  }
  const auto learning = std::count_if(tasks_.begin(), tasks_.end(), [&](const auto& task) {
    return takes_over(*task) && std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& other) {
             return takes_over(*other) && (differs_in_types(*task, *other) || is_of_other_kernel(*task, *other));
           });
  });
  if (learning > 0) {
    lines.push_back(
        fmt::format("the searches of {} of {} tell each other what they find of other element types or kernels",
                    learning, counted(problems, "problem")));
  }
  return lines;
}

}  // namespace pascaline
