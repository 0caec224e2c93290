#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/trial.hpp"
#include "tuner/measure/trial_runner.hpp"
#include "tuner/sweep/known_energy.hpp"
#include "tuner/sweep/objective_decision.hpp"
#include "tuner/sweep/standing_decision.hpp"

namespace pascaline {

/// How finalists are compared.
struct FinalsOptions {
  int rounds = 40;           ///< at most; each finalist is timed once a round, in turn, so that drift touches all alike
  int min_rounds = 10;       ///< before the first look at the times
  int rounds_per_look = 5;   ///< from one look to the next
  int launches = 3;          ///< timed launches a finalist a round
  double p_value = 0.01;     ///< two-sided, of all looks together; above it a difference is a tie
  double tie_width = 0.005;  ///< relative: medians known this well and no farther apart are a tie without more rounds
  double energy_window_ms = 500;  ///< of the run that an energy is taken from; 0: no energy
  /// For a winner by time alone energies, which take some seconds, are information: a sweep takes them where the search
  /// took a device so many seconds. It is no option: who asks for another objective gets energies in any case.
  double energy_after_search_s = 20;
  ObjectiveOptions objective{};  ///< what else than time they are compared by; time: nothing else
  /// Text of the configuration that stands for the default where that is not usable; empty: none does.
  std::string stand_in{};
  std::optional<StandingDecision> standing{};  ///< of earlier finals, of a configuration that is a finalist again
  std::optional<KnownEnergies> energies{};     ///< that earlier finals of the same run measured
};

/// What finals tell while they run; any function may be empty.
struct FinalsEvents {
  /// Whenever another finalist is on the device: the one to blame, by its index among those given.
  std::function<void(std::size_t finalist)> running;
  std::function<void(int rounds)> round;  ///< after each round, with how many there were
};

/// What the finals decided.
struct FinalsResult {
  std::vector<Trial> trials;  ///< one a finalist that still ran, in the order given
  std::size_t winner = 0;     ///< index into trials
  /// Index into trials of what the winner is compared with: the default, or what stands in for it.
  std::optional<std::size_t> baseline_trial{};
  std::optional<TimeSummary> baseline;  ///< its time
  double confidence = 0.5;              ///< that the winner is not slower than the baseline; 0.5 if it is the baseline
  std::vector<Trial> failed;            ///< finalists that did not run any more, with the reason
  bool tie = false;                     ///< others are not significantly slower than the fastest; a rule decided
  int rounds = 0;                       ///< that were undisturbed
  bool gave_up = false;         ///< the card did not become fit: nothing is decided, and none of it must be stored
  bool out_of_time = false;     ///< too few rounds fitted in (DeviceMonitor::set_end_s); otherwise as with `gave_up`
  bool stays = false;           ///< the standing winner wins again, and the earlier finals tell better by how much
  bool energies_again = false;  ///< energies are those of the earlier finals, see FinalsOptions::energies
  bool from_search = false;     ///< nothing was timed in turn: see `decide_from_search`
  std::optional<ObjectiveDecision> by_objective{};  ///< where finals were to decide by another objective, too
  std::string compiler{};                           ///< of the winner, "nvrtc 12.9"; empty where there was no choice
  std::optional<StandingDecision> standing{};       ///< for people: what stays, where something does
  std::string baseline_why{};  ///< why the default is not the baseline; empty if it is, or there is none
};

/// Fewest rounds that finals decide by: with fewer no difference could be significant.
inline constexpr int kMinFinalsRounds = 2;

/// Re-times finalists interleaved until one is significantly the fastest, a tie is certain, or the next round would not
/// be over in time (DeviceMonitor::set_end_s), decides (`decide_finals`), and then, if there is time, takes the energy
/// of the winner and the baseline, or those that earlier finals measured (`energies_again`); or, where another
/// objective is asked for, measures its contenders in turn and decides by that as well (`decide_objective`). What was
/// decided by time stands whatever comes of it. Finalists that fail now are left out and the finals begin again;
/// nothing if none is left or the device is lost.
[[nodiscard]] std::optional<FinalsResult> run_finals(TrialRunner& runner,
                                                     const std::vector<std::pair<Config, Binary>>& finalists,
                                                     const FinalsOptions& options, const FinalsEvents& events = {});

/// Decides by the Mann-Whitney test, its p-value split over the looks (Bonferroni). The tie set is the finalist with
/// the lowest median and all that are not significantly slower. If the baseline (the default, or what stands in for it)
/// is in it, the baseline wins. Else the first of it by the configuration's text does, of those significantly faster
/// than the baseline. The winner of earlier finals (`FinalsOptions::standing`) comes before these where it is in the
/// set, and what takes its place otherwise is significantly faster than it, too. It also stays where the baseline ties,
/// or it is not significantly faster than the baseline, if it is by both finals together (`confidence_of_both`) and the
/// baseline is not significantly faster than it.
void decide_finals(FinalsResult& result, const FinalsOptions& options);

/// Decides once more among some of the trials (`members`, indices into `all.trials`), compared with `baseline`, one of
/// them: as if finals had been held among these alone. Indices of the result are into `members`.
[[nodiscard]] FinalsResult decide_among(const FinalsResult& all, const std::vector<std::size_t>& members,
                                        std::size_t baseline, FinalsOptions options);

/// Decides where there is no time for finals, from what the search measured: `trials` holds the fastest and, unless
/// that is the fastest, the baseline behind it (its index, if there is one). The fastest of `measured` configurations
/// is so by luck in part, and it was not timed in turn with the baseline, so each median counts as uncertain by another
/// percent, and the probability that the baseline is as fast is taken times `measured`. The fastest wins if that leaves
/// a confidence of 0.9; more than 0.95 is never claimed. Otherwise the baseline stays, at 0.5.
[[nodiscard]] FinalsResult decide_from_search(std::vector<Trial> trials, std::optional<std::size_t> baseline,
                                              std::size_t measured);

/// Whether more rounds would change nothing: the tie set has one member, or all its medians are known and the same
/// within `tie_width`.
[[nodiscard]] bool finals_are_settled(const FinalsResult& result, const FinalsOptions& options);

/// Whether the times are looked at after that many rounds.
[[nodiscard]] bool finals_look_after(int rounds, const FinalsOptions& options);

}  // namespace pascaline
