#include "tuner/finals/finals.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

constexpr int kMinSamples = 3;
constexpr int kDisturbedFactor = 2;           // passes over the contenders for each round wanted, at most
constexpr double kEnergySettlingSeconds = 3;  // of an energy, besides its window
constexpr std::size_t kFewContenders = 2;     // besides the winner by time and the baseline

// Each round begins with another one: what runs right after the canary is at a small disadvantage, and what one leaves
// of its heat is not always the same one's.
std::vector<std::size_t> in_turn(std::vector<std::size_t> members, int round) {
  const auto first = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(round) % members.size());
  std::rotate(members.begin(), members.begin() + first, members.end());
  return members;
}

std::vector<std::size_t> indices(std::size_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

}  // namespace

Finals::Finals(std::vector<Trial> contenders, const FinalsObjective& objective, FinalsOptions options,
               std::function<double(double)> clock_scale)
    : objective_(objective), options_(std::move(options)), clock_scale_(std::move(clock_scale)) {
  for (Trial& trial : contenders) {
    trial.stage = TrialStage::finals;
  }
  blanks_ = std::move(contenders);
  begin();
}

void Finals::begin() {
  std::vector<Trial> failed = std::move(result_.failed);
  result_ = {};
  result_.trials = blanks_;
  result_.failed = std::move(failed);
  stage_ = blanks_.empty() ? Stage::over : Stage::times;
  canaries_us_.clear();
  passes_ = 0;
  longest_round_s_ = 0;
  cut_ = false;
  settled_ = false;
}

void Finals::fail(std::size_t contender, std::string reason) {
  const auto failed = blanks_.begin() + static_cast<std::ptrdiff_t>(contender);
  failed->status = TrialStatus::launch_failed;
  failed->reason = std::move(reason);
  result_.failed.push_back(std::move(*failed));
  blanks_.erase(failed);
  begin();
}

std::optional<FinalsResult> Finals::decided() const {
  return stage_ == Stage::over && !result_.trials.empty() ? std::optional(result_) : std::nullopt;
}

bool Finals::is_compared(std::size_t trial) const { return trial == result_.winner || trial == result_.baseline_trial; }

Round Finals::next(double left_s) {
  round_ = {};
  if (stage_ == Stage::times && !wants_times(left_s)) {
    stage_ = decide_by_time() ? Stage::windows : Stage::over;
    if (stage_ == Stage::windows && !objective_.by_time_alone()) {
      begin_windows(left_s);
    }
  }
  if (stage_ == Stage::windows && !wants_windows(left_s)) {
    decide_by_objective();
    reuse_energies();
    stage_ = Stage::energies;
  }
  if (stage_ == Stage::energies && !wants_energy(left_s)) {
    stage_ = Stage::over;
  }
  return round_;
}

void Finals::add(RoundSamples samples) {
  if (stage_ == Stage::times) {
    add_times(std::move(samples));
  } else if (stage_ == Stage::windows) {
    add_windows(std::move(samples));
  } else if (stage_ == Stage::energies) {
    add_energy(std::move(samples));
  }
}

bool Finals::wants_times(double left_s) {
  if (settled_ || cut_ || result_.gave_up || result_.rounds >= options_.rounds ||
      passes_ >= kDisturbedFactor * options_.rounds) {
    return false;
  }
  cut_ = left_s < longest_round_s_;
  if (!cut_) {
    round_ = {SampleKind::launches, in_turn(indices(result_.trials.size()), passes_)};
    ++passes_;
  }
  return !cut_;
}

// A round with a marked sample does not count as one, though its other samples do.
void Finals::add_times(RoundSamples samples) {
  cut_ = samples.end == RoundSamples::End::out_of_time;
  result_.gave_up = samples.end == RoundSamples::End::failed;
  if (cut_ || result_.gave_up) {
    return;
  }
  longest_round_s_ = std::max(longest_round_s_, samples.seconds);
  canaries_us_.insert(canaries_us_.end(), samples.canaries_us.begin(), samples.canaries_us.end());
  bool undisturbed = true;
  for (std::size_t turn = 0; turn < round_.turns.size(); ++turn) {
    const std::vector<Sample>& launches = samples.turns.at(turn).launches;
    undisturbed = undisturbed && std::ranges::all_of(launches, &Sample::counted);
    std::vector<Sample>& all = result_.trials[round_.turns[turn]].samples;
    all.insert(all.end(), launches.begin(), launches.end());
  }
  result_.rounds += undisturbed ? 1 : 0;
  if (undisturbed && options_.looks().due_after(result_.rounds)) {
    summarize_trials();
    settled_ = time_objective().compare({}, result_.trials, options_)->settled();
  }
}

// All were timed in turn, so they have one canary and one scale.
void Finals::summarize_trials() {
  const auto canary_us = canaries_us_.empty() ? std::nullopt : std::optional(median(canaries_us_));
  for (Trial& trial : result_.trials) {
    trial.canary_us = canary_us;
    trial.clock_scale = canary_us && clock_scale_ ? clock_scale_(*canary_us) : 1.0;
    trial.time = summarize(trial.samples, trial.clock_scale);
  }
}

bool Finals::decide_by_time() {
  bool enough = !result_.gave_up && (!cut_ || result_.rounds >= std::min(kMinFinalsRounds, options_.rounds));
  if (enough) {
    summarize_trials();
    const int wanted = std::min(kMinSamples, options_.rounds * options_.launches);
    enough = std::ranges::all_of(result_.trials, [&](const Trial& trial) { return trial.time->count >= wanted; });
  }
  result_.out_of_time = !enough && cut_;
  result_.gave_up = !enough && !cut_;
  if (enough) {
    FinalsOptions options = options_;
    options.rounds = cut_ ? result_.rounds : options.rounds;  // looks that were planned after these were none
    decide_finals(result_, options);
  }
  return enough;
}

void Finals::begin_windows(double left_s) {
  ObjectiveDecision& decision = result_.by_objective.emplace();
  decision.objective = objective_.id();
  for (const std::size_t trial : near_contenders(left_s)) {
    decision.contenders.push_back({trial, {}});
  }
  if (decision.contenders.empty()) {
    decision.out_of_time = true;
    decision.undecided = "there was no time left for it";
  }
  members_ = indices(decision.contenders.size());
  windows_ = 0;
  cut_ = false;
}

// Contenders are those near the fastest, which come first, the winner by time, which a rule may have decided, and the
// baseline. The slowest are left out where the time is too short for all; the winner by time and the baseline never
// are, and something to compare them with stays.
std::vector<std::size_t> Finals::near_contenders(double left_s) const {
  const auto time_us = [this](std::size_t i) { return result_.trials[i].time->median_us; };
  std::vector<std::size_t> order = indices(result_.trials.size());
  std::ranges::stable_sort(order, {}, time_us);
  const double longest_us = options_.objective.contender_factor * time_us(order.front());
  std::erase_if(order, [&](std::size_t i) { return time_us(i) > longest_us && !is_compared(i); });
  const auto fits = [&] {
    return objective_.first_window_s(options_) +
               objective_.window_s(options_) * options_.objective.min_rounds * static_cast<double>(order.size()) <=
           left_s;
  };
  for (std::size_t i = order.size(); i-- > 0 && order.size() > 2 && !fits();) {
    if (!is_compared(order[i])) {
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return fits() ? order : std::vector<std::size_t>{};
}

bool Finals::wants_windows(double left_s) {
  const ObjectiveOptions& options = options_.objective;
  if (!result_.by_objective || !result_.by_objective->undecided.empty() || cut_ || windows_ >= options.max_rounds) {
    return false;
  }
  if (windows_ > 0 && options.looks().due_after(windows_)) {
    const auto compare = objective_.compare(result_.by_objective->contenders, result_.trials, options_);
    if (compare->settled()) {
      return false;
    }
    leave_out(*compare);
  }
  const double window_s = objective_.window_s(options_);
  if (windows_ >= options.min_rounds && left_s < window_s * static_cast<double>(members_.size())) {
    return false;
  }
  round_ = {objective_.sampling(), in_turn(members_, windows_), window_s, windows_ == 0};
  for (std::size_t& turn : round_.turns) {
    turn = result_.by_objective->contenders[turn].trial;
  }
  return true;
}

// First those that are worse than the best; later all but the best few: many rounds distinguish what differs by a
// percent, and few contenders have many rounds.
void Finals::leave_out(const ContenderComparison& compare) {
  const auto is_kept = [&](std::size_t i) { return is_compared(result_.by_objective->contenders[i].trial); };
  std::erase_if(members_, [&](std::size_t i) { return !is_kept(i) && compare.better(compare.best(), i); });
  if (windows_ < options_.objective.rounds_of_all) {
    return;
  }
  std::vector<std::size_t> others;
  std::ranges::copy_if(members_, std::back_inserter(others), [&](std::size_t i) { return !is_kept(i); });
  std::ranges::stable_sort(others, {}, [&](std::size_t i) { return compare.score(i); });
  others.resize(std::min(others.size(), kFewContenders));
  std::erase_if(members_, [&](std::size_t i) { return !is_kept(i) && std::ranges::find(others, i) == others.end(); });
}

// Where the time was up in the middle of a round, those before may be enough.
void Finals::add_windows(RoundSamples samples) {
  ObjectiveDecision& decision = *result_.by_objective;
  cut_ = samples.end == RoundSamples::End::out_of_time;
  if (samples.end != RoundSamples::End::whole) {
    const bool enough = cut_ && windows_ >= options_.objective.min_rounds;
    decision.out_of_time = cut_ && !enough;
    decision.undecided = enough ? "" : samples.why_not;
  }
  for (std::size_t turn = 0; turn < samples.turns.size(); ++turn) {
    Trial& trial = result_.trials[round_.turns.at(turn)];
    trial.reason = samples.turns[turn].note.empty() ? trial.reason : samples.turns[turn].note;
    if (samples.end == RoundSamples::End::whole) {
      std::ranges::find(decision.contenders, round_.turns[turn], &Contender::trial)
          ->values.push_back(samples.turns[turn].value);
    }
  }
  windows_ += samples.end == RoundSamples::End::whole ? 1 : 0;
}

void Finals::decide_by_objective() {
  if (!result_.by_objective || !result_.by_objective->undecided.empty()) {
    return;
  }
  for (const Contender& contender : result_.by_objective->contenders) {
    objective_.note(result_.trials[contender.trial], contender);
  }
  decide_objective(*result_.by_objective, result_.trials, result_.baseline_trial, options_, result_.winner);
}

// A winner's and a baseline's that finals before measured in the same state of the card: the seconds that measuring
// again takes go to samples. By an objective the windows of a round are compared with each other, and taken again.
void Finals::reuse_energies() {
  next_energy_ = 0;
  if (!(options_.energy_window_ms > 0) || !options_.energies || !objective_.by_time_alone()) {
    return;
  }
  std::vector<std::size_t> wanted = indices(result_.trials.size());
  std::erase_if(wanted, [this](std::size_t i) { return !is_compared(i); });
  const auto known = energies_again(*options_.energies, result_.trials, wanted);
  for (std::size_t i = 0; known && i < wanted.size(); ++i) {
    result_.trials[wanted[i]].energy_mj = (*known)[i];
    result_.trials[wanted[i]].reason = "its energy is what the finals before measured";
  }
  result_.energies_again = known.has_value();
}

// The winner and the baseline are what is compared: their energies take one to three seconds each. What was decided
// stands without them, too.
bool Finals::wants_energy(double left_s) {
  const double window_s = kEnergySettlingSeconds + options_.energy_window_ms / 1000;
  const auto is_wanted = [this](std::size_t i) { return is_compared(i) && !result_.trials[i].energy_mj; };
  while (next_energy_ < result_.trials.size() && !is_wanted(next_energy_)) {
    ++next_energy_;
  }
  if (!(options_.energy_window_ms > 0) || next_energy_ == result_.trials.size() || left_s < window_s) {
    return false;
  }
  round_ = {SampleKind::energy, {next_energy_++}, window_s};
  return true;
}

void Finals::add_energy(RoundSamples samples) {
  if (samples.end == RoundSamples::End::whole) {
    result_.trials[round_.turns.front()].energy_mj = samples.turns.at(0).value;
  } else {
    next_energy_ = result_.trials.size();
  }
}

}  // namespace pascaline
