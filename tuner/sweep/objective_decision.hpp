#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/objective.hpp"
#include "core/trial.hpp"

namespace pascaline {

/// How finalists are compared by another objective than time.
struct ObjectiveOptions {
  Objective objective = Objective::time;
  double contender_factor = 1.5;  ///< only finalists up to so many times as slow as the fastest, and the baseline
  int min_rounds = 3;             ///< each contender is measured once a round, in turn, so that drift touches all alike
  int max_rounds = 24;            ///< if it is not clear before
  int rounds_per_look = 3;        ///< from the first look, after `min_rounds`, to the next
  int rounds_of_all = 6;          ///< of all contenders that were not shown to be worse; then the best few go on alone
  double p_value = 0.01;          ///< two-sided, of all looks and contenders together
  double tie_width = 0.005;       ///< relative: a smaller difference is never called one
  double sustain_first_s = 60;    ///< until the card is steady, in the first window of sustained work, at most
  double sustain_again_s = 20;    ///< the same in later ones, which find the card warm
  double sustain_window_s = 2;    ///< of steady work that is timed
  std::optional<double> max_temperature_c{};  ///< of the user: work that warms the card beyond it is not sustained
};

/// For an objective, as a sweep uses them.
[[nodiscard]] ObjectiveOptions objective_options(Objective objective);

/// Seconds that a window of one contender takes at most, the first of all aside.
[[nodiscard]] double window_seconds(const ObjectiveOptions& options, double energy_window_ms);

/// What was measured of a finalist for an objective.
struct Contender {
  std::size_t trial = 0;  ///< index into FinalsResult::trials
  /// One a round: millijoules a launch, or microseconds a launch of sustained work. Who has fewer than others was left
  /// out of later rounds, and does not win.
  std::vector<double> values;
};

/// What was decided by another objective than time.
struct ObjectiveDecision {
  Objective objective = Objective::energy;
  std::vector<Contender> contenders{};
  std::size_t winner = 0;                  ///< index into FinalsResult::trials
  double score = 0;                        ///< its value, in the objective's unit
  std::optional<double> baseline_score{};  ///< that of what it is compared with, if there is such
  double confidence = 0.5;   ///< that the winner is not worse than the baseline; 0.5 if it is the baseline
  bool tie = false;          ///< others are not significantly worse than the best; a rule decided
  bool out_of_time = false;  ///< nothing is decided, as there was too little time
  std::string undecided{};   ///< why nothing is decided; empty if something is
};

/// A finalist's value by the objective: the geometric mean of its windows without the lowest and the highest tenth, for
/// `edp` times its median time.
[[nodiscard]] double score_of(Objective objective, const Contender& contender, const Trial& trial);

/// Says whose windows are to be measured: those of all contenders, until looks find some worse than the best, and from
/// a number of rounds on those of the best few alone: many rounds tell differences of a percent apart, of a few they
/// do.
class ObjectiveRounds {
 public:
  /// `kept`: trials whose contenders are never left out: the winner by time, and the baseline. All must outlive it.
  ObjectiveRounds(const ObjectiveDecision& decision, const std::vector<Trial>& trials, const ObjectiveOptions& options,
                  std::vector<std::size_t> kept)
      : decision_(&decision), trials_(&trials), options_(&options), kept_(std::move(kept)) {}

  /// Indices of the contenders that have another window each, in this order; none when it is over. When the windows of
  /// those before were added.
  [[nodiscard]] std::vector<std::size_t> next();
  /// Whole rounds before that one.
  [[nodiscard]] int rounds() const noexcept { return rounds_ - 1; }

 private:
  [[nodiscard]] bool is_kept(std::size_t contender) const;
  void leave_out(std::vector<std::size_t>& members) const;

  const ObjectiveDecision* decision_;
  const std::vector<Trial>* trials_;
  const ObjectiveOptions* options_;
  std::vector<std::size_t> kept_;
  std::vector<std::size_t> members_{};
  int rounds_ = 0;
};

/// Decides as finals do by time, by paired t-tests on the logarithms of the windows of each round, of which the lowest
/// and the highest tenth do not count: a window in which the machine was busy otherwise is far off (`trimmed_mean`;
/// `edp` adds the uncertainty of both median times): the tie set is the contender with the lowest score of those in all
/// rounds, and all of these that are not significantly worse. If the baseline is in it, the winner by time wins if it
/// is in it, too, and else the baseline. If it is not, the first of the tie set by the configuration's text does, of
/// those significantly better than the baseline. `baseline` and `by_time`: indices into trials; a baseline that is not
/// among the contenders leaves it undecided.
void decide_objective(ObjectiveDecision& decision, const std::vector<Trial>& trials,
                      std::optional<std::size_t> baseline, const ObjectiveOptions& options,
                      std::optional<std::size_t> by_time = std::nullopt);

/// Whether more rounds would change nothing: one contender is better than all others, or those that are not worse than
/// the best are known to be within `tie_width` of it.
[[nodiscard]] bool objective_is_settled(const ObjectiveDecision& decision, const std::vector<Trial>& trials,
                                        const ObjectiveOptions& options);

}  // namespace pascaline
