#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/trial.hpp"
#include "tuner/finals/finals_options.hpp"

namespace pascaline {

/// A finalist with the values that an objective compares.
struct Contender {
  std::size_t trial = 0;  ///< index into FinalsResult::trials
  /// One a round: millijoules a launch, or microseconds a launch of sustained work. A contender that has fewer than
  /// others was left out of later rounds, and does not win.
  std::vector<double> values;
};

/// The decision by another objective than time.
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

/// Details of a decision that are only displayed.
struct ShownDecision {
  std::string compiler{};                      ///< that built the winner, e.g. "nvrtc 12.9"; empty without a choice
  std::optional<StandingDecision> standing{};  ///< the earlier decision, if it stays
  std::string baseline_why{};  ///< why the default is not the baseline; empty if it is, or there is none
};

/// The decision of finals.
struct FinalsResult {
  std::vector<Trial> trials;  ///< one a finalist that still ran, in the order given
  std::size_t winner = 0;     ///< index into trials
  /// Index into trials of what the winner is compared with: the default, or what replaces it.
  std::optional<std::size_t> baseline_trial{};
  std::optional<TimeSummary> baseline;  ///< its time
  double confidence = 0.5;              ///< that the winner is not slower than the baseline; 0.5 if it is the baseline
  std::vector<Trial> failed;            ///< finalists that did not run any more, with the reason
  bool tie = false;                     ///< others are not significantly slower than the fastest; a rule decided
  int rounds = 0;                       ///< that were undisturbed
  bool gave_up = false;         ///< the card did not become fit: nothing is decided, and none of it must be stored
  bool out_of_time = false;     ///< too few rounds fitted in; otherwise as with `gave_up`
  bool stays = false;           ///< the standing winner wins again, and the earlier finals know better by how much
  bool energies_again = false;  ///< energies are those of the earlier finals, see FinalsOptions::energies
  bool from_search = false;     ///< nothing was timed in turn: see `decide_from_search`
  std::optional<ObjectiveDecision> by_objective{};  ///< where finals were to decide by another objective, too
  ShownDecision shown{};                            ///< for display
};

/// Decides by the Mann-Whitney test, its p-value split over the looks (Bonferroni). The tie set is the finalist with
/// the lowest median and all that are not significantly slower. If the baseline (the default, or what replaces it) is
/// in it, the baseline wins. Otherwise the winner is the first member, by the configuration's text, that is
/// significantly faster than the baseline. The standing winner (`FinalsOptions::standing`) has precedence if it is in
/// the set; another configuration replaces it only if it is significantly faster than it, too. If these finals alone do
/// not show that the standing winner is faster than the baseline, it stays if both finals together do
/// (`confidence_of_both`) and the baseline is not significantly faster than it.
void decide_finals(FinalsResult& result, const FinalsOptions& options);

/// Decides once more among some of the trials (`members`, indices into `all.trials`), compared with `baseline`, one of
/// them: as if finals had been held among these alone. Indices of the result are into `members`.
[[nodiscard]] FinalsResult decide_among(const FinalsResult& all, const std::vector<std::size_t>& members,
                                        std::size_t baseline, FinalsOptions options);

/// Decides without finals, from the trials of the search: `trials` holds the fastest and, unless
/// that is the fastest, the baseline after it (its index, if there is one). The fastest of `measured` configurations
/// is so by luck in part, and it was not timed in turn with the baseline, so each median counts as uncertain by another
/// percent, and the probability that the baseline is as fast is taken times `measured`. The fastest wins if that leaves
/// a confidence of 0.9; more than 0.95 is never claimed. Otherwise the baseline stays, at 0.5.
[[nodiscard]] FinalsResult decide_from_search(std::vector<Trial> trials, std::optional<std::size_t> baseline,
                                              std::size_t measured);

/// Decides as finals do by time, as the objective compares (`FinalsObjective::compare`): the tie set is the contender
/// with the lowest score of those in all rounds, and all of these that are not significantly worse. If the baseline is
/// in it, the winner by time wins if it is in it, too, and else the baseline. If it is not, the fastest of the tie set
/// does, of those significantly better than the baseline and the winner by time. `baseline` and `by_time`: indices into
/// trials; a baseline that is not among the contenders leaves it undecided.
void decide_objective(ObjectiveDecision& decision, const std::vector<Trial>& trials,
                      std::optional<std::size_t> baseline, const FinalsOptions& options,
                      std::optional<std::size_t> by_time = std::nullopt);

}  // namespace pascaline
