#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/space/shape_distance.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/sweep/device_plan.hpp"

// What a plan does with the time that its searches leave.
namespace pascaline {
namespace {

constexpr std::size_t kNeighboursATurn = 32;
constexpr double kTrialSeconds = 0.1;      // where none was measured yet
constexpr double kTrialsOfFirstLook = 16;  // with finals
constexpr double kFewestTrials = 4;        // for which a shape is begun
constexpr int kMinRoundsAgain = 2;

struct TrialSeconds {
  double sum_s = 0;
  int trials = 0;
  [[nodiscard]] double mean() const { return trials > 0 ? sum_s / trials : kTrialSeconds; }
};

// Of the run, by configuration of the search: the last of each, and how many there are.
struct StoredFinals {
  std::vector<Trial> last;
  int most = 0;
};

StoredFinals last_of_each(const std::vector<Trial>& trials) {
  StoredFinals finals;
  std::map<std::string, std::pair<std::size_t, int>> sites;
  for (const Trial& trial : trials) {
    const auto [site, fresh] = sites.try_emplace(trial.config.text(), finals.last.size(), 0);
    if (fresh) {
      finals.last.push_back(trial);
    } else {
      finals.last[site->second.first] = trial;
    }
    finals.most = std::max(finals.most, ++site->second.second);
  }
  return finals;
}

// By what share the winner of one shape is slower on another than what is best there; nothing if it was not tried.
std::optional<double> loss_of(const SweepTask& winner_of, const SweepTask& on) {
  const auto time_us = on.search.time_us(*winner_of.winner);
  return time_us && on.search.best_us() > 0 ? std::optional(*time_us / on.search.best_us() - 1) : std::nullopt;
}

}  // namespace

bool DevicePlan::deepens_here() const { return deepens(options_); }

bool DevicePlan::ended(const SweepTask& task) const {
  return task.at_its_end() && (task.search.usable() == 0 || task.decided_on == task.search.finalists_key());
}

bool DevicePlan::keeps(const SweepTask& task) const {
  return deepens_here() && !task.kernel.is_site && task.fault.empty() && task.search.usable() > 0;
}

// Those on either side of it: the nearest tuned shape as the dispatcher measures it, and the nearest of those from
// which the first is farther away than this one is.
std::vector<DevicePlan::Near> DevicePlan::tuned_around(const SweepTask& task) const {
  const Space& space = *task.kernel.own_space;
  const Problem& problem = task.search.wanted().problem;
  std::vector<Near> tuned;
  for (const auto& other : tasks_) {
    if (other.get() != &task && !other->reserved && &other->kernel == &task.kernel && other->winner) {
      if (const auto octaves = shape_distance(space, problem, other->search.wanted().problem)) {
        tuned.push_back({*octaves, other.get()});
      }
    }
  }
  std::stable_sort(tuned.begin(), tuned.end(), [](const Near& a, const Near& b) { return a.octaves < b.octaves; });
  if (tuned.empty()) {
    return tuned;
  }
  const Near first = tuned.front();
  std::vector<Near> around{first};
  const auto beyond = std::find_if(tuned.begin() + 1, tuned.end(), [&](const Near& other) {
    const auto apart = shape_distance(space, first.task->search.wanted().problem, other.task->search.wanted().problem);
    return apart && *apart > std::max(first.octaves, other.octaves);
  });
  if (beyond != tuned.end()) {
    around.push_back(*beyond);
  }
  return around;
}

std::optional<DevicePlan::Choice> DevicePlan::choice_between(SweepTask& task, double trial_s, double left_s) const {
  const std::vector<Near> around = tuned_around(task);
  if (around.empty() || around.front().octaves <= 0) {
    return std::nullopt;
  }
  double weight = 0;
  double log_us = 0;
  for (const Near& near : around) {
    weight += near.task->weight / static_cast<double>(around.size());
    log_us += std::log(std::max(near.task->search.best_us(), 1e-3)) / static_cast<double>(around.size());
  }
  std::optional<double> cross_loss;
  double apart = 0;
  if (around.size() == 2) {
    const auto forth = loss_of(*around[0].task, *around[1].task);
    const auto back = loss_of(*around[1].task, *around[0].task);
    cross_loss = forth && back ? std::optional((*forth + *back) / 2) : forth ? forth : back;
    apart = around[0].octaves + around[1].octaves;
  }
  const double share = expected_of_shape(around.front().octaves, cross_loss, apart);
  const double cost_s = kTrialsOfFirstLook * trial_s;
  if (share < options_.min_gain || left_s < kFewestTrials * trial_s) {
    return std::nullopt;
  }
  return Choice{Deepening::between, &task, weight * std::exp(log_us) * share / cost_s, share, weight};
}

std::optional<DevicePlan::Choice> DevicePlan::choice_of_finals(SweepTask& task) const {
  const OpenFinals& open = task.open_finals;
  if (task.finals_again >= kMaxFinalsAgain || open.close == 0 || !(open.share > 0) || open.share < options_.min_gain ||
      options_.finals.rounds < kMinRoundsAgain) {
    return std::nullopt;
  }
  double once_s = 0;
  for (const std::string& config : open.among) {
    once_s += task.search.launch_s_of(config);
  }
  const double rounds = options_.finals.rounds * rounds_factor(task.finals_again + 1);
  const double cost_s = std::max(1e-3, once_s * rounds * options_.finals.launches);
  return Choice{Deepening::finals, &task, task.weight * task.search.best_us() * open.share / cost_s, open.share, 0};
}

std::optional<DevicePlan::Choice> DevicePlan::choice_of_neighbours(SweepTask& task, double trial_s) const {
  const double share = expected_of_neighbour(task.near_winner);
  if (task.no_neighbour_left || !task.search.may_try() || share < options_.min_gain) {
    return std::nullopt;
  }
  return Choice{Deepening::neighbours, &task, task.weight * task.search.best_us() * share / std::max(trial_s, 1e-6),
                share, 0};
}

std::vector<DevicePlan::Choice> DevicePlan::choices(double left_s) const {
  TrialSeconds all;
  for (const auto& task : tasks_) {
    all.sum_s += task->spent_s;
    all.trials += task->measured;
  }
  const bool searches = options_.searcher != kNoSearcher;
  std::vector<Choice> found;
  const auto add = [&](const std::optional<Choice>& choice) {
    if (choice) {
      found.push_back(*choice);
    }
  };
  for (const auto& task : tasks_) {
    if (task->reserved && searches) {
      add(choice_between(*task, all.mean(), left_s));
    } else if (task->state.stage() == TaskStage::waiting && !task->reserved && keeps(*task) && ended(*task)) {
      add(choice_of_finals(*task));
      if (searches) {
        add(choice_of_neighbours(*task, task->trial_s().value_or(all.mean())));
      }
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Choice& a, const Choice& b) { return a.rate > b.rate; });
  return found;
}

// Its own winner first, then those of the kernel's other shapes, the nearest first.
std::vector<Config> DevicePlan::winners_near(const SweepTask& task) const {
  std::vector<Config> winners;
  if (task.winner) {
    winners.push_back(*task.winner);
  }
  for (const Near& near : tuned_around(task)) {
    if (std::find(winners.begin(), winners.end(), *near.task->winner) == winners.end()) {
      winners.push_back(*near.task->winner);
    }
  }
  return winners;
}

bool DevicePlan::begin_deepening(const Choice& choice) {
  SweepTask& task = *choice.task;
  if (choice.what == Deepening::neighbours) {
    const std::vector<Config> near = task.search.untried_near(winners_near(task), kNeighboursATurn);
    task.no_neighbour_left = near.empty();
    if (near.empty()) {
      return false;
    }
    task.search.try_only(near);
    task.trying = near.size();
  } else if (choice.what == Deepening::between) {
    task.weight = choice.weight;
    task.search.begin_with_winners(winners_near(task));
    task.reserved = false;
  } else {
    ++task.finals_again;
  }
  task.deepening = choice.what;
  task.expected_share = choice.share;
  task.best_before_us = task.search.best_us();
  return true;
}

SweepTask* DevicePlan::deepen(double left_s) {
  for (const Choice& choice : choices(left_s)) {
    if (begin_deepening(choice)) {
      nothing_to_deepen_ = false;
      return choice.task;
    }
  }
  nothing_to_deepen_ = true;
  return nullptr;
}

// What has nothing to deepen either is over, unless what a device does now may change that.
void DevicePlan::finish_ended() {
  if (std::any_of(tasks_.begin(), tasks_.end(), [](const auto& task) { return task->state.taken(); })) {
    return;
  }
  for (const auto& task : tasks_) {
    const bool spent = task->search.spent() && task->search.open() == 0;
    if (task->state.stage() == TaskStage::waiting && !task->reserved && keeps(*task) && spent && ended(*task)) {
      task->state.finish();
    }
  }
}

// What won on one shape may be near what is best on others.
void DevicePlan::note_winner(SweepTask& task, const Config& winner) {
  if (task.winner == winner) {
    return;
  }
  task.winner = winner;
  task.near_winner = {};
  for (const auto& other : tasks_) {
    if (&other->kernel == &task.kernel) {
      other->no_neighbour_left = false;
    }
  }
}

// Where an earlier process of the run stood with a problem that it had decided.
void DevicePlan::recall_finals(SweepRecorder& recorder, SweepTask& task, const std::string& run) const {
  const Problem& problem = task.search.wanted().problem;
  const auto compiler_of = [&](const ToolkitRow& toolkit) -> std::optional<std::size_t> {
    const std::vector<ToolkitRow> here = toolkits();
    for (std::size_t i = 0; i < task.contexts.size(); ++i) {
      if (here[i] == toolkit) {
        return i;
      }
    }
    return std::nullopt;
  };
  const auto of_search = [&](Trial& trial, const ToolkitRow& toolkit, const KernelRow& kernel,
                             const DeviceRow& device) {
    const auto compiler = compiler_of(toolkit);
    if (!compiler || kernel.source_hash != task.kernel.source.hash || !same_identity(device, device_row(info_)) ||
        !trial.time) {
      return false;
    }
    trial.config = task.kernel.compilers->with(trial.config, *compiler);
    return true;
  };
  std::vector<Trial> finals;
  std::optional<Config> winner;
  recorder.persist([&](Store& store) {
    finals.clear();
    winner.reset();
    std::set<std::int64_t> sessions;
    for (const SessionRow& session : store.sessions()) {
      if (session.run_uuid == run) {
        sessions.insert(session.id);
      }
    }
    TrialFilter filter;
    filter.kernel = problem.kernel;
    filter.problem = problem.text();
    for (StoredTrial& stored : store.trials(filter)) {
      if (stored.trial.stage == TrialStage::finals && sessions.contains(stored.session_id) &&
          of_search(stored.trial, stored.toolkit, stored.kernel, stored.device)) {
        finals.push_back(std::move(stored.trial));
      }
    }
    const DeviceRow device = device_row(info_);
    for (Winner& stored : store.winners(problem.kernel, &device)) {
      if (!winner && stored.trial.problem == problem &&
          of_search(stored.trial, stored.toolkit, stored.kernel, stored.device)) {
        winner = stored.trial.config;
      }
    }
  });
  task.winner = winner;
  const StoredFinals stored = last_of_each(finals);
  const auto found = std::find_if(stored.last.begin(), stored.last.end(),
                                  [&](const Trial& trial) { return winner && trial.config == *winner; });
  if (found != stored.last.end()) {
    task.open_finals = open_finals(stored.last, static_cast<std::size_t>(found - stored.last.begin()));
  }
  task.finals_again = std::clamp(stored.most - 1, 0, kMaxFinalsAgain);
}

}  // namespace pascaline
