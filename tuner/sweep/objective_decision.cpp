#include "tuner/sweep/objective_decision.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

constexpr double kStandardErrorsOf95 = 1.96;
// Windows that read the very same, as those of a coarse sensor may, are not known any better than this.
constexpr double kLeastRelativeError = 0.001;
constexpr double kLongestEnergySettling = 2;  // seconds; see measure_energy_window
constexpr double kSustainedFactor = 1.25;
constexpr int kSustainedRounds = 5;

double log_time_error(const Trial& trial) { return relative_half_width(*trial.time) / kStandardErrorsOf95; }

/// Compares contenders by index.
class Scores {
 public:
  Scores(const ObjectiveDecision& decision, const std::vector<Trial>& trials, const ObjectiveOptions& options)
      : contenders_(decision.contenders), trials_(trials), edp_(decision.objective == Objective::edp) {
    for (const Contender& contender : contenders_) {
      rounds_ = std::min(rounds_, contender.values.size());
      scores_.push_back(std::log(score_of(decision.objective, contender, trials[contender.trial])));
      best_ = scores_.back() < scores_[best_] ? scores_.size() - 1 : best_;
    }
    const int looks = std::max(1, options.max_rounds - options.min_rounds + 1);
    const double others = std::max(1.0, static_cast<double>(contenders_.size()) - 1);
    p_value_ = options.p_value / (looks * others);
    tie_width_ = options.tie_width;
  }

  [[nodiscard]] std::size_t best() const noexcept { return best_; }
  [[nodiscard]] double difference(std::size_t a, std::size_t b) const { return scores_[a] - scores_[b]; }
  // Of the difference, relative.
  [[nodiscard]] double error(std::size_t a, std::size_t b) const {
    std::vector<double> differences;
    for (std::size_t round = 0; round < rounds_; ++round) {
      differences.push_back(std::log(contenders_[a].values[round] / contenders_[b].values[round]));
    }
    const auto n = static_cast<double>(rounds_);
    const double mean = std::accumulate(differences.begin(), differences.end(), 0.0) / n;
    double squares = 0;
    for (const double value : differences) {
      squares += (value - mean) * (value - mean);
    }
    double variance = std::max(squares / (n - 1), kLeastRelativeError * kLeastRelativeError) / n;
    if (edp_) {
      for (const std::size_t i : {a, b}) {
        const double of_time = log_time_error(trials_[contenders_[i].trial]);
        variance += of_time * of_time;
      }
    }
    return std::sqrt(variance);
  }
  [[nodiscard]] double p(std::size_t a, std::size_t b) const {
    return rounds_ < 2 ? 1.0 : student_t_p(difference(a, b) / error(a, b), static_cast<int>(rounds_) - 1);
  }
  [[nodiscard]] bool better(std::size_t a, std::size_t b) const {
    return difference(a, b) < -tie_width_ && p(a, b) <= p_value_;
  }
  [[nodiscard]] std::vector<std::size_t> tie_set() const {
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < scores_.size(); ++i) {
      if (i == best_ || !better(best_, i)) {
        members.push_back(i);
      }
    }
    return members;
  }

 private:
  const std::vector<Contender>& contenders_;
  const std::vector<Trial>& trials_;
  bool edp_;
  std::size_t rounds_ = std::size_t{1} << 20U;
  std::vector<double> scores_;  // logarithms
  std::size_t best_ = 0;
  double p_value_ = 0;
  double tie_width_ = 0;
};

}  // namespace

ObjectiveOptions objective_options(Objective objective) {
  ObjectiveOptions options;
  options.objective = objective;
  if (objective == Objective::sustained) {  // whose windows take long
    options.contender_factor = kSustainedFactor;
    options.max_rounds = kSustainedRounds;
  }
  return options;
}

double window_seconds(const ObjectiveOptions& options, double energy_window_ms) {
  switch (options.objective) {
    case Objective::energy:
    case Objective::edp:
      return kLongestEnergySettling + energy_window_ms / 1000;
    case Objective::sustained:
      return options.sustain_again_s + options.sustain_window_s;
    case Objective::time:
      break;
  }
  return 0;
}

double score_of(Objective objective, const Contender& contender, const Trial& trial) {
  double logs = 0;
  for (const double value : contender.values) {
    logs += std::log(value);
  }
  const double mean = std::exp(logs / static_cast<double>(std::max<std::size_t>(1, contender.values.size())));
  return objective == Objective::edp ? mean * trial.time->median_us : mean;
}

void decide_objective(ObjectiveDecision& decision, const std::vector<Trial>& trials,
                      std::optional<std::size_t> baseline, const ObjectiveOptions& options,
                      std::optional<std::size_t> by_time) {
  if (decision.contenders.empty()) {
    decision.undecided = "nothing was measured";
    return;
  }
  const Scores scores(decision, trials, options);
  const std::vector<Contender>& contenders = decision.contenders;
  const auto score = [&](std::size_t i) {
    return score_of(decision.objective, contenders[i], trials[contenders[i].trial]);
  };
  std::vector<std::size_t> candidates = scores.tie_set();
  decision.tie = candidates.size() > 1;
  const auto place_of = [&](std::optional<std::size_t> trial) -> std::optional<std::size_t> {
    const auto found = std::find_if(contenders.begin(), contenders.end(),
                                    [&](const Contender& contender) { return contender.trial == trial; });
    return found == contenders.end() ? std::nullopt : std::optional<std::size_t>(found - contenders.begin());
  };
  const auto is_candidate = [&](std::size_t i) {
    return std::find(candidates.begin(), candidates.end(), i) != candidates.end();
  };
  const auto leave_better_than = [&](std::size_t other) {
    std::erase_if(candidates, [&](std::size_t i) { return !scores.better(i, other); });
  };
  // The winner by time stays where nothing is better than it; what takes its place is better than it, not only as good
  // as the best. Of several such the fastest, so that nothing is paid for nothing.
  const std::optional<std::size_t> quickest = place_of(by_time);
  const bool stays = quickest && is_candidate(*quickest);
  if (quickest && !stays) {
    leave_better_than(*quickest);
  }
  const auto choose = [&] {
    const auto rank = [&](std::size_t i) {
      const Trial& trial = trials[contenders[i].trial];
      return std::pair(trial.time->median_us, trial.config.text());
    };
    return stays ? *quickest
                 : *std::min_element(candidates.begin(), candidates.end(),
                                     [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  };
  std::size_t winner = 0;
  if (!baseline) {
    winner = choose();
    decision.confidence = 1.0;
  } else {
    const std::optional<std::size_t> standard = place_of(baseline);
    if (!standard) {
      decision.undecided = "the default was not measured";
      return;
    }
    decision.baseline_score = score(*standard);
    if (is_candidate(*standard)) {
      winner = stays ? *quickest : *standard;
      decision.confidence = 0.5;
    } else {
      leave_better_than(*standard);
      winner = choose();
      decision.confidence = 1.0 - scores.p(winner, *standard) / 2.0;
    }
  }
  decision.winner = contenders[winner].trial;
  decision.score = score(winner);
}

bool objective_is_settled(const ObjectiveDecision& decision, const std::vector<Trial>& trials,
                          const ObjectiveOptions& options) {
  const Scores scores(decision, trials, options);
  const std::vector<std::size_t> tied = scores.tie_set();
  return std::all_of(tied.begin(), tied.end(), [&](std::size_t i) {
    return i == scores.best() || (scores.difference(i, scores.best()) <= options.tie_width &&
                                  scores.error(i, scores.best()) <= options.tie_width / 2);
  });
}

}  // namespace pascaline
