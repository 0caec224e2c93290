#include "report/pareto.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "db/outdated_winner.hpp"

namespace pascaline {
namespace {

bool has_point(const Trial& trial) {
  return trial.time && trial.time->median_us > 0 && trial.energy_mj && *trial.energy_mj > 0 &&
         std::isfinite(*trial.energy_mj);
}

/// Points under construction.
struct Gathering {
  ParetoProblem problem;
  std::map<std::int64_t, ParetoPoint> all;              // by trial
  std::unordered_map<std::string, std::size_t> places;  // of configurations, among the points
};

// Of a configuration the latest trial counts.
void add_point(Gathering& gathering, const StoredTrial& stored) {
  const Trial& trial = stored.trial;
  std::vector<ParetoPoint>& points = gathering.problem.points;
  const auto [place, fresh] = gathering.places.try_emplace(trial.config.text(), points.size());
  ParetoPoint point{stored.id, trial.config, trial.time->median_us, *trial.energy_mj, trial.is_default};
  gathering.all.emplace(stored.id, point);
  if (fresh) {
    points.push_back(std::move(point));
  } else if (points[place->second].trial_id < point.trial_id) {
    points[place->second] = std::move(point);
  }
}

void mark_front(std::vector<ParetoPoint>& points) {
  std::sort(points.begin(), points.end(), [](const ParetoPoint& a, const ParetoPoint& b) {
    return std::tuple(a.median_us, a.energy_mj, a.trial_id) < std::tuple(b.median_us, b.energy_mj, b.trial_id);
  });
  double least_mj = std::numeric_limits<double>::infinity();
  for (ParetoPoint& point : points) {
    point.on_front = point.energy_mj < least_mj;
    least_mj = std::min(least_mj, point.energy_mj);
  }
}

// Of a winner the trial that won counts, if both are known of it: first of that by time, which others are compared
// with.
void take_winning_trials(std::map<ParetoKey, Gathering>& gathered, const std::vector<Winner>& winners) {
  for (const Objective objective : {Objective::edp, Objective::energy, Objective::time}) {
    for (const Winner& winner : winners) {
      const auto found =
          gathered.find(pareto_key(winner.device, winner.toolkit, winner.kernel.source_hash, winner.trial.problem));
      if (winner.objective != objective || found == gathered.end()) {
        continue;
      }
      const auto point = found->second.all.find(winner.trial_id);
      const auto place = found->second.places.find(winner.trial.config.text());
      if (point != found->second.all.end() && place != found->second.places.end()) {
        found->second.problem.points[place->second] = point->second;
      }
    }
  }
}

// A winner's trial may lack one of the two: the point is another trial of its configuration.
const ParetoPoint* point_of(const ParetoProblem& problem, const Config& config) {
  const auto found = std::find_if(problem.points.begin(), problem.points.end(),
                                  [&](const ParetoPoint& point) { return point.config == config; });
  return found == problem.points.end() ? nullptr : &*found;
}

const ParetoPoint* point_of(const ParetoProblem& problem, const std::optional<std::int64_t>& trial) {
  const auto found = std::find_if(problem.points.begin(), problem.points.end(),
                                  [&](const ParetoPoint& point) { return trial && point.trial_id == *trial; });
  return found == problem.points.end() ? nullptr : &*found;
}

void set_winners(std::map<ParetoKey, ParetoProblem>& problems, const std::vector<Winner>& winners) {
  std::map<ParetoKey, const Winner*> by_time;
  std::map<ParetoKey, const Winner*> by_energy;
  for (const Winner& winner : winners) {
    const ParetoKey key = pareto_key(winner.device, winner.toolkit, winner.kernel.source_hash, winner.trial.problem);
    const auto found = problems.find(key);
    if (found == problems.end()) {
      continue;
    }
    const ParetoPoint* const point = point_of(found->second, winner.trial.config);
    if (point == nullptr) {
      continue;
    }
    if (winner.objective == Objective::time) {
      found->second.time_winner = point->trial_id;
      by_time.emplace(key, &winner);
    } else if (winner.objective == Objective::energy) {
      found->second.energy_winner = point->trial_id;
      by_energy.emplace(key, &winner);
    } else if (winner.objective == Objective::edp) {
      found->second.edp_winner = point->trial_id;
    }
  }
  for (const auto& [key, winner] : by_energy) {
    if (const auto fastest = by_time.find(key); fastest != by_time.end()) {
      problems[key].energy_outdated = why_outdated(*winner, *fastest->second).value_or("");
    }
  }
}

std::string change_text(double ratio, std::string_view what) {
  const double percent = 100 * std::abs(ratio - 1);
  return fmt::format("{:.1f} % {} {}", percent, ratio <= 1 ? "less" : "more", what);
}

}  // namespace

ParetoKey pareto_key(const DeviceRow& device, const ToolkitRow& toolkit, const std::string& source_hash,
                     const Problem& problem) {
  return {device.kind,
          device.name,
          device.compute_capability,
          std::to_string(device.sm_count),
          toolkit.compiler,
          toolkit.version,
          toolkit.target,
          toolkit.driver_version,
          source_hash,
          problem.text()};
}

std::map<ParetoKey, ParetoProblem> pareto_problems(const Store& store, const std::string& kernel,
                                                   const std::function<bool(const StoredTrial&)>& is_wanted) {
  std::map<ParetoKey, Gathering> gathered;
  TrialFilter filter;
  filter.kernel = kernel;
  filter.with_energy = true;
  store.for_each_trial(filter, [&](const StoredTrial& stored) {
    if (!has_point(stored.trial) || (is_wanted && !is_wanted(stored))) {
      return;
    }
    Gathering& gathering =
        gathered[pareto_key(stored.device, stored.toolkit, stored.kernel.source_hash, stored.trial.problem)];
    ParetoProblem& problem = gathering.problem;
    if (problem.points.empty()) {
      problem.device = stored.device;
      problem.toolkit = stored.toolkit;
      problem.kernel = stored.kernel;
      problem.problem = stored.trial.problem;
    }
    add_point(gathering, stored);
  });
  const std::vector<Winner> winners = store.winners(kernel, nullptr, std::nullopt);
  take_winning_trials(gathered, winners);
  std::map<ParetoKey, ParetoProblem> problems;
  for (auto& [key, gathering] : gathered) {
    if (gathering.problem.points.size() > 1) {
      mark_front(gathering.problem.points);
      problems.emplace(key, std::move(gathering.problem));
    }
  }
  set_winners(problems, winners);
  return problems;
}

void thin_out_points(ParetoProblem& problem, std::size_t most) {
  if (problem.points.size() <= most) {
    return;
  }
  const std::size_t each = problem.points.size() / most + 1;
  std::size_t ordinary = 0;
  std::erase_if(problem.points, [&](const ParetoPoint& point) {
    return !point.on_front && pareto_role(problem, point).empty() && ordinary++ % each != 0;
  });
}

std::string pareto_role(const ParetoProblem& problem, const ParetoPoint& point) {
  std::string text;
  for (const auto& [is, name] : {std::pair(problem.time_winner == point.trial_id, "winner by time"),
                                 std::pair(problem.energy_winner == point.trial_id, "winner by energy"),
                                 std::pair(problem.edp_winner == point.trial_id, "winner by energy-delay product"),
                                 std::pair(point.is_default, "default")}) {
    text += is ? (text.empty() ? "" : ", ") + std::string(name) : "";
  }
  return text;
}

std::string pareto_sentence(const ParetoProblem& problem) {
  const ParetoPoint* fastest = point_of(problem, problem.time_winner);
  const std::string compared = fastest != nullptr ? "the winner by time" : "the fastest";
  fastest = fastest != nullptr ? fastest : &problem.points.front();
  const ParetoPoint* thriftiest = point_of(problem, problem.energy_winner);
  const bool decided = thriftiest != nullptr;
  if (!decided) {
    thriftiest =
        &*std::min_element(problem.points.begin(), problem.points.end(),
                           [](const ParetoPoint& a, const ParetoPoint& b) { return a.energy_mj < b.energy_mj; });
  }
  const std::string undecided = decided ? "" : " No winner by energy was decided.";
  const std::string who = decided ? "winner by energy" : "configuration with the least energy";
  if (thriftiest == fastest) {
    return fmt::format("The {} is {}.{}", who, compared, undecided);
  }
  if (decided && !problem.energy_outdated.empty()) {
    return fmt::format("The winner by energy is {}; the winner by time is used.", problem.energy_outdated);
  }
  return fmt::format("The {} uses {} at {} than {}.{}", who,
                     change_text(thriftiest->energy_mj / fastest->energy_mj, "energy"),
                     change_text(thriftiest->median_us / fastest->median_us, "time"), compared, undecided);
}

}  // namespace pascaline
