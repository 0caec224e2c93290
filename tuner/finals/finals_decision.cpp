#include "tuner/finals/finals_decision.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/util/statistics.hpp"
#include "tuner/finals/objective.hpp"

namespace pascaline {
namespace {

constexpr double kMinFromSearch = 0.9;
constexpr double kMaxFromSearch = 0.95;
constexpr double kNotInTurn = 0.01;  // what clock and temperature may have changed by between two trials

double standard_error_us(const TimeSummary& time) {
  return std::hypot((time.high_us - time.low_us) / (2 * kErrorsOf95), kNotInTurn * time.median_us);
}

std::optional<std::size_t> index_of(const std::vector<Contender>& contenders, std::optional<std::size_t> trial) {
  const auto found = std::ranges::find_if(contenders, [&](const Contender& one) { return one.trial == trial; });
  return found == contenders.end() ? std::nullopt : std::optional<std::size_t>(found - contenders.begin());
}

}  // namespace

FinalsResult decide_among(const FinalsResult& all, const std::vector<std::size_t>& members, std::size_t baseline,
                          FinalsOptions options) {
  FinalsResult result;
  result.rounds = all.rounds;
  for (const std::size_t member : members) {
    result.trials.push_back(all.trials[member]);
    result.trials.back().is_default = member == baseline;
  }
  options.stand_in.clear();
  decide_finals(result, options);
  return result;
}

FinalsResult decide_from_search(std::vector<Trial> trials, std::optional<std::size_t> baseline, std::size_t measured) {
  FinalsResult result;
  result.from_search = true;
  result.trials = std::move(trials);
  result.baseline_trial = baseline;
  if (!baseline) {
    return result;
  }
  const TimeSummary& best = *result.trials.front().time;
  const TimeSummary& standard = *result.trials[*baseline].time;
  result.baseline = standard;
  result.winner = *baseline;
  if (*baseline == 0) {
    return result;
  }
  const double error_us = std::hypot(standard_error_us(best), standard_error_us(standard));
  const double z = (standard.median_us - best.median_us) / error_us;
  const double wrong = static_cast<double>(std::max<std::size_t>(1, measured)) * 0.5 * std::erfc(z / std::sqrt(2.0));
  if (1 - wrong >= kMinFromSearch) {
    result.winner = 0;
    result.confidence = std::min(kMaxFromSearch, 1 - wrong);
  }
  return result;
}

void decide_objective(ObjectiveDecision& decision, const std::vector<Trial>& trials,
                      std::optional<std::size_t> baseline, const FinalsOptions& options,
                      std::optional<std::size_t> by_time) {
  const std::vector<Contender>& contenders = decision.contenders;
  if (contenders.empty()) {
    decision.undecided = "nothing was measured";
    return;
  }
  const auto standard = index_of(contenders, baseline);
  if (baseline && !standard) {
    decision.undecided = "the default was not measured";
    return;
  }
  const auto compare = objective_of(decision.objective).compare(contenders, trials, options);
  const auto choice = compare->decide(standard, index_of(contenders, by_time));
  decision.winner = contenders[choice.winner].trial;
  decision.score = compare->score(choice.winner);
  decision.confidence = choice.confidence;
  decision.tie = choice.tie;
  if (standard) {
    decision.baseline_score = compare->score(*standard);
  }
}

}  // namespace pascaline
