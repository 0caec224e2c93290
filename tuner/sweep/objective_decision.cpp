#include "tuner/sweep/objective_decision.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

constexpr double kStandardErrorsOf95 = 1.96;
// Windows that read the very same, as those of a coarse sensor may, are not known any better than this.
constexpr double kMinRelativeError = 0.001;
constexpr double kLongestEnergySettling = 2;  // seconds; see measure_energy_window
constexpr double kSustainedFactor = 1.25;
constexpr int kSustainedRounds = 5;
constexpr std::size_t kFewContenders = 2;  // besides the winner by time and the baseline

double log_time_error(const Trial& trial) { return relative_half_width(*trial.time) / kStandardErrorsOf95; }

/// Compares contenders by index.
class Scores {
 public:
  Scores(const ObjectiveDecision& decision, const std::vector<Trial>& trials, const ObjectiveOptions& options)
      : contenders_(decision.contenders), trials_(trials), edp_(decision.objective == Objective::edp) {
    for (const Contender& contender : contenders_) {
      rounds_ = std::max(rounds_, contender.values.size());
      scores_.push_back(std::log(score_of(decision.objective, contender, trials[contender.trial])));
    }
    while (best_ + 1 < contenders_.size() && !is_in(best_)) {
      ++best_;
    }
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      best_ = is_in(i) && scores_[i] < scores_[best_] ? i : best_;
    }
    const int looks = 1 + std::max(0, options.max_rounds - options.min_rounds + options.rounds_per_look - 1) /
                              options.rounds_per_look;
    const double others = std::max(1.0, static_cast<double>(contenders_.size()) - 1);
    p_value_ = options.p_value / (looks * others);
    tie_width_ = options.tie_width;
  }

  [[nodiscard]] std::size_t best() const noexcept { return best_; }
  /// Whether it was measured in every round.
  [[nodiscard]] bool is_in(std::size_t i) const { return contenders_[i].values.size() == rounds_; }
  /// Logarithms of the scores.
  [[nodiscard]] const std::vector<double>& logs() const noexcept { return scores_; }
  // Of the rounds that both have.
  [[nodiscard]] double difference(std::size_t a, std::size_t b) const {
    double of_times = 0;
    if (edp_) {
      of_times =
          std::log(trials_[contenders_[a].trial].time->median_us / trials_[contenders_[b].trial].time->median_us);
    }
    return trimmed_mean(differences(a, b)).mean + of_times;
  }
  // Of the difference, relative.
  [[nodiscard]] double error(std::size_t a, std::size_t b) const {
    const std::vector<double> of_rounds = differences(a, b);
    const auto n = static_cast<double>(of_rounds.size());
    const double of_windows = std::max(trimmed_mean(of_rounds).error, kMinRelativeError / std::sqrt(n));
    double variance = of_windows * of_windows;
    if (edp_) {
      for (const std::size_t i : {a, b}) {
        const double of_time = log_time_error(trials_[contenders_[i].trial]);
        variance += of_time * of_time;
      }
    }
    return std::sqrt(variance);
  }
  [[nodiscard]] double p(std::size_t a, std::size_t b) const {
    const int degrees = trimmed_mean(differences(a, b)).degrees;
    return degrees < 1 ? 1.0 : student_t_p(difference(a, b) / error(a, b), degrees);
  }
  [[nodiscard]] bool better(std::size_t a, std::size_t b) const {
    return difference(a, b) < -tie_width_ && p(a, b) <= p_value_;
  }
  [[nodiscard]] std::vector<std::size_t> tie_set() const {
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < scores_.size(); ++i) {
      if (i == best_ || (is_in(i) && !better(best_, i))) {
        members.push_back(i);
      }
    }
    return members;
  }

 private:
  [[nodiscard]] std::vector<double> differences(std::size_t a, std::size_t b) const {
    std::vector<double> logs;
    const std::vector<double>& of_a = contenders_[a].values;
    const std::vector<double>& of_b = contenders_[b].values;
    for (std::size_t round = 0; round < std::min(of_a.size(), of_b.size()); ++round) {
      logs.push_back(std::log(of_a[round] / of_b[round]));
    }
    return logs;
  }

  const std::vector<Contender>& contenders_;
  const std::vector<Trial>& trials_;
  bool edp_;
  std::size_t rounds_ = 0;
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
    options.max_rounds = options.rounds_of_all = kSustainedRounds;
    options.rounds_per_look = 1;
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

bool ObjectiveRounds::is_kept(std::size_t contender) const {
  return std::ranges::find(kept_, decision_->contenders[contender].trial) != kept_.end();
}

// Of those measured so far, who is worse than the best; and in the end all but the best few.
void ObjectiveRounds::leave_out(std::vector<std::size_t>& members) const {
  const Scores scores(*decision_, *trials_, *options_);
  std::erase_if(members, [&](std::size_t i) { return !is_kept(i) && scores.better(scores.best(), i); });
  if (rounds_ < options_->rounds_of_all) {
    return;
  }
  std::vector<std::size_t> others;
  std::ranges::copy_if(members, std::back_inserter(others), [&](std::size_t i) { return !is_kept(i); });
  std::ranges::stable_sort(others, {}, [&](std::size_t i) { return scores.logs()[i]; });
  others.resize(std::min(others.size(), kFewContenders));
  std::erase_if(members, [&](std::size_t i) { return !is_kept(i) && std::ranges::find(others, i) == others.end(); });
}

// Rounds begin with another contender each: what one leaves of its heat is not always the same one's.
std::vector<std::size_t> ObjectiveRounds::next() {
  if (rounds_ == 0) {
    members_.resize(decision_->contenders.size());
    std::iota(members_.begin(), members_.end(), std::size_t{0});
  } else if (rounds_ >= options_->max_rounds) {
    return {};
  } else if (rounds_ >= options_->min_rounds && (rounds_ - options_->min_rounds) % options_->rounds_per_look == 0) {
    if (objective_is_settled(*decision_, *trials_, *options_)) {
      return {};
    }
    leave_out(members_);
  }
  std::vector<std::size_t> order = members_;
  if (!order.empty()) {
    const auto first = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rounds_) % order.size());
    std::rotate(order.begin(), order.begin() + first, order.end());
  }
  ++rounds_;
  return order;
}

double score_of(Objective objective, const Contender& contender, const Trial& trial) {
  std::vector<double> logs;
  for (const double value : contender.values) {
    logs.push_back(std::log(value));
  }
  const double mean = std::exp(trimmed_mean(std::move(logs)).mean);
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
    return i == scores.best() || (std::abs(scores.difference(i, scores.best())) <= options.tie_width &&
                                  scores.error(i, scores.best()) <= options.tie_width / 2);
  });
}

}  // namespace pascaline
