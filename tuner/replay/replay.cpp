#include "tuner/replay/replay.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <tuple>

#include "tuner/replay/recorded_race.hpp"
#include "tuner/replay/score.hpp"
#include "tuner/search/stop_rule.hpp"

namespace pascaline {
namespace {

struct Task {
  std::size_t space = 0;
  std::size_t searcher = 0;
  std::vector<ReplayRun> runs;
  double spent_ms = 0;
  std::size_t evaluations = 0;
  int left = 0;  ///< repeats
};

// Until the budgets are used up or the optimum is found, after which nothing can change.
ReplayRun run_once(const RecordedDomain& space, const ScoreScale& scale, const std::string& searcher,
                   const ReplayOptions& options, std::uint64_t seed) {
  SearchOptions search;
  search.seed = seed;
  search.expected_trials = options.budgets.back();
  const auto strategy = make_searcher(searcher, space.domain(), search);
  const auto most = static_cast<std::size_t>(options.budgets.back());
  ReplayRun run;
  double best_us = std::numeric_limits<double>::infinity();
  double cost_ms = 0;
  StopRule stop(options.min_gain);
  const auto more = [&] {
    return !stop.is_reached(*strategy) && (options.min_gain > 0 || best_us > space.optimum_us()) &&
           (run.best_us.size() < most || (options.score && cost_ms < scale.run_budget_ms()));
  };
  while (more()) {
    const std::vector<Point> points = strategy->propose(options.batch);
    if (points.empty()) {
      break;
    }
    for (const Point& point : points) {
      const Observation observation = space.observation(point);
      if (has_time(observation.status)) {
        best_us = std::min(best_us, observation.time_us);
      }
      cost_ms += scale.cost_ms(space.trial(point));
      run.best_us.push_back(best_us);
      run.cost_ms.push_back(cost_ms);
      strategy->observe(point, observation);
    }
  }
  return run;
}

std::optional<SamplingTimes> race_once(const RecordedDomain& space, const std::string& searcher,
                                       const ReplayOptions& options, std::uint64_t seed) {
  if (!options.race || !space.best_median_us()) {
    return std::nullopt;
  }
  RecordedRace race;
  race.searcher = searcher;
  race.seed = seed;
  race.trials = static_cast<std::size_t>(options.budgets.back());
  const auto time_of = [&](SampleRule rule) { return sampling_ms_to_1_percent(space, race, rule); };
  return SamplingTimes{time_of(SampleRule::all), time_of(SampleRule::precision), time_of(SampleRule::race)};
}

std::optional<SamplingTimes> median_times(const std::vector<ReplayRun>& runs) {
  if (!runs.front().sampling) {
    return std::nullopt;
  }
  const auto middle = [&](double SamplingTimes::*field) {
    std::vector<double> times;
    for (const ReplayRun& run : runs) {
      times.push_back((*run.sampling).*field);
    }
    return quartiles(std::move(times)).median;
  };
  return SamplingTimes{middle(&SamplingTimes::all_ms), middle(&SamplingTimes::precision_ms),
                       middle(&SamplingTimes::race_ms)};
}

double best_after(const ReplayRun& run, int evaluations) {
  return run.best_us.empty() ? std::numeric_limits<double>::infinity()
                             : run.best_us[std::min(run.best_us.size(), static_cast<std::size_t>(evaluations)) - 1];
}

ReplayResult result_of(const Task& task, const std::string& name, const RecordedDomain& space, const ScoreScale& scale,
                       const ReplayOptions& options) {
  ReplayResult result;
  result.space = name;
  result.searcher = options.searchers[task.searcher];
  for (const int budget : options.budgets) {
    std::vector<double> ratios;
    for (const ReplayRun& run : task.runs) {
      ratios.push_back(best_after(run, budget) / space.optimum_us());
    }
    result.ratios[budget] = quartiles(std::move(ratios));
  }
  if (options.score && space.times_us().front() < space.times_us()[space.times_us().size() / 2]) {
    result.score_curve = scale.curve(task.runs);
    double sum = 0;
    for (const double point : result.score_curve) {
      sum += point;
    }
    result.score = sum / static_cast<double>(result.score_curve.size());
  }
  std::vector<double> made;
  for (const ReplayRun& run : task.runs) {
    made.push_back(static_cast<double>(run.best_us.size()));
  }
  result.evaluations = quartiles(std::move(made)).median;
  std::vector<double> needed;
  for (const ReplayRun& run : task.runs) {
    const auto near = std::find_if(run.best_us.begin(), run.best_us.end(),
                                   [&](double best_us) { return best_us <= 1.03 * space.optimum_us(); });
    needed.push_back(near == run.best_us.end() ? std::numeric_limits<double>::infinity()
                                               : static_cast<double>(near - run.best_us.begin() + 1));
  }
  result.evaluations_to_3_percent = quartiles(std::move(needed)).median;
  result.sampling = median_times(task.runs);
  result.proposal_ms = task.spent_ms / static_cast<double>(std::max<std::size_t>(1, task.evaluations));
  return result;
}

// The repeats of all tasks, handed out to threads one by one.
class ReplayPool {
 public:
  ReplayPool(const std::vector<RecordedSpace>& spaces, const ReplayOptions& options,
             const std::function<void(const ReplayResult&)>& told, const std::atomic<bool>& stop)
      : spaces_(spaces), options_(options), told_(told), stop_(stop) {
    for (const RecordedSpace& space : spaces) {
      domains_.emplace_back(space);
      scales_.emplace_back(domains_.back());
    }
    for (std::size_t space = 0; space < spaces.size(); ++space) {
      for (std::size_t searcher = 0; searcher < options.searchers.size(); ++searcher) {
        Task task{space, searcher, {}, 0, 0, options.repeats};
        task.runs.resize(static_cast<std::size_t>(options.repeats));
        tasks_.push_back(std::move(task));
      }
    }
    results_.resize(tasks_.size());
  }

  std::vector<ReplayResult> run() {
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < std::max<std::size_t>(1, options_.jobs); ++i) {
      threads.emplace_back([this] { work(); });
    }
    work();
    for (std::thread& thread : threads) {
      thread.join();
    }
    if (fault_) {
      std::rethrow_exception(fault_);
    }
    std::vector<ReplayResult> done;
    for (auto& result : results_) {
      if (result) {
        done.push_back(std::move(*result));
      }
    }
    return done;
  }

 private:
  void work() {
    const auto repeats = static_cast<std::size_t>(options_.repeats);
    while (!stop_) {
      const std::size_t next = next_++;
      if (next >= tasks_.size() * repeats) {
        return;
      }
      try {
        step(next / repeats, next % repeats);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        fault_ = fault_ ? fault_ : std::current_exception();
        next_ = tasks_.size() * repeats;
      }
    }
  }

  void step(std::size_t index, std::size_t repeat) {
    Task& task = tasks_[index];
    const auto started = std::chrono::steady_clock::now();
    ReplayRun run = run_once(domains_[task.space], scales_[task.space], options_.searchers[task.searcher], options_,
                             options_.seed + repeat);
    const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - started;
    run.sampling = race_once(domains_[task.space], options_.searchers[task.searcher], options_, options_.seed + repeat);
    const std::lock_guard lock(mutex_);
    task.spent_ms += spent.count();
    task.evaluations += run.best_us.size();
    task.runs[repeat] = std::move(run);
    if (--task.left == 0) {
      results_[index] = result_of(task, spaces_[task.space].name, domains_[task.space], scales_[task.space], options_);
      task.runs.clear();
      if (told_) {
        told_(*results_[index]);
      }
    }
  }

  const std::vector<RecordedSpace>& spaces_;
  const ReplayOptions& options_;
  const std::function<void(const ReplayResult&)>& told_;
  const std::atomic<bool>& stop_;
  std::deque<RecordedDomain> domains_;
  std::deque<ScoreScale> scales_;
  std::vector<Task> tasks_;
  std::vector<std::optional<ReplayResult>> results_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr fault_;
};

}  // namespace

Quartiles quartiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(place);
    const std::size_t high = std::min(low + 1, values.size() - 1);
    const double part = place - static_cast<double>(low);
    return part == 0 || values[low] == values[high] ? values[low] : values[low] + part * (values[high] - values[low]);
  };
  return {at(0.25), at(0.5), at(0.75)};
}

std::vector<ReplayResult> replay(const std::vector<RecordedSpace>& spaces, const ReplayOptions& options,
                                 const std::function<void(const ReplayResult&)>& told, const std::atomic<bool>& stop) {
  return ReplayPool(spaces, options, told, stop).run();
}

std::vector<ReplaySummary> summarise(const std::vector<ReplayResult>& results) {
  std::vector<ReplaySummary> summaries;
  std::map<std::string, std::vector<const ReplayResult*>> by_searcher;
  std::vector<std::string> order;
  std::size_t most = 0;
  for (const ReplayResult& result : results) {
    auto& own = by_searcher[result.searcher];
    if (own.empty()) {
      order.push_back(result.searcher);
    }
    own.push_back(&result);
    most = std::max(most, own.size());
  }
  for (const std::string& searcher : order) {
    const auto& own = by_searcher[searcher];
    if (own.size() < most) {
      continue;
    }
    const double count = static_cast<double>(own.size());
    ReplaySummary summary;
    summary.searcher = searcher;
    for (const auto& entry : own.front()->ratios) {
      const int budget = entry.first;
      Quartiles logs;
      for (const ReplayResult* result : own) {
        const Quartiles& ratio = result->ratios.at(budget);
        logs.low += std::log(ratio.low) / count;
        logs.median += std::log(ratio.median) / count;
        logs.high += std::log(ratio.high) / count;
      }
      summary.ratios[budget] = {std::exp(logs.low), std::exp(logs.median), std::exp(logs.high)};
    }
    double sum = 0;
    double scored = 0;
    for (const ReplayResult* result : own) {
      sum += result->score.value_or(0);
      scored += result->score ? 1 : 0;
    }
    if (scored > 0) {
      summary.score = sum / scored;
    }
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

}  // namespace pascaline
