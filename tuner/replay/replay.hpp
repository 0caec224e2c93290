#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/replay/recorded_domain.hpp"

namespace pascaline {

struct ReplayOptions {
  std::vector<std::string> searchers;          ///< names `make_searcher` knows
  std::vector<int> budgets{25, 50, 100, 200};  ///< evaluations after which the best found is looked at, ascending
  int repeats = 100;
  std::uint64_t seed = 1;  ///< of the first repeat; the others follow
  std::size_t batch = 1;   ///< proposals that are out at once
  std::size_t jobs = 1;    ///< threads
  bool score = true;       ///< also the score over time, whose budget may be far over the largest of `budgets`
  double min_gain = 0;     ///< a repeat ends where a sweep would (StopRule), not at the optimum; 0: at the optimum
  bool race = false;       ///< also how long launches take until near the optimum, where single launches are recorded
};

/// By each SampleRule, what `sampling_ms_to_1_percent` tells.
struct SamplingTimes {
  double all_ms = 0;
  double precision_ms = 0;
  double race_ms = 0;
};

/// One repeat of one searcher on one space.
struct ReplayRun {
  std::vector<double> best_us;  ///< after each evaluation; infinity before the first that worked
  std::vector<double> cost_ms;  ///< of all evaluations so far
  std::optional<SamplingTimes> sampling{};
};

struct Quartiles {
  double low = 0;
  double median = 0;
  double high = 0;
};
/// With linear interpolation; `values` must not be empty.
[[nodiscard]] Quartiles quartiles(std::vector<double> values);

/// How a searcher did on a space.
struct ReplayResult {
  std::string space;
  std::string searcher;
  std::map<int, Quartiles> ratios;          ///< budget → best found over the optimum; infinite if nothing worked
  std::optional<double> score;              ///< P of one space
  std::vector<double> score_curve;          ///< at equidistant points of the space's time budget
  double proposal_ms = 0;                   ///< mean time of a proposal with its observation
  double evaluations = 0;                   ///< made, median over repeats
  double evaluations_to_3_percent = 0;      ///< median over repeats of evaluations until within 3 % of the optimum
  std::optional<SamplingTimes> sampling{};  ///< medians over repeats; infinite where most do not come there
};

/// A result over all spaces.
struct ReplaySummary {
  std::string searcher;
  std::map<int, Quartiles> ratios;  ///< geometric means over the spaces of the spaces' quartiles
  std::optional<double> score;      ///< the score's mean over the points and over the spaces that have one
};

/// Runs every searcher on every space; `told`, if given, is called with each result as it is ready, from one thread at
/// a time. The same seed gives the same results whatever the number of threads. Ends early, with what is done, when
/// `stop` is set.
[[nodiscard]] std::vector<ReplayResult> replay(const std::vector<RecordedSpace>& spaces, const ReplayOptions& options,
                                               const std::function<void(const ReplayResult&)>& told,
                                               const std::atomic<bool>& stop);

/// One for each searcher, in the order of the results. Searchers that have not done every space are left out.
[[nodiscard]] std::vector<ReplaySummary> summarise(const std::vector<ReplayResult>& results);

}  // namespace pascaline
