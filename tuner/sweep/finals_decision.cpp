#include <algorithm>
#include <cmath>
#include <utility>

#include "core/util/statistics.hpp"
#include "tuner/sweep/finals.hpp"

namespace pascaline {
namespace {

std::vector<double> times_of(const Trial& trial) {
  std::vector<double> times;
  for (const Sample& sample : trial.samples) {
    if (sample.counted()) {
      times.push_back(sample.time_us);
    }
  }
  return times;
}

constexpr double kMinFromSearch = 0.9;
constexpr double kMaxFromSearch = 0.95;
constexpr double kNotInTurn = 0.01;        // what clock and temperature may have changed by between two trials
constexpr double kHalfWidthErrors = 1.96;  // standard errors that half of a 95 % interval is

double standard_error_us(const TimeSummary& time) {
  return std::hypot((time.high_us - time.low_us) / (2 * kHalfWidthErrors), kNotInTurn * time.median_us);
}

int looks(const FinalsOptions& options) {
  int count = 0;
  for (int round = 1; round <= options.rounds; ++round) {
    count += finals_look_after(round, options) ? 1 : 0;
  }
  return std::max(1, count);
}

/// Holds every finalist's times, to compare them by index.
class Comparison {
 public:
  Comparison(const FinalsResult& result, const FinalsOptions& options)
      : trials_(result.trials), p_value_(options.p_value / looks(options)) {
    for (const Trial& trial : trials_) {
      times_.push_back(times_of(trial));
      fastest_ = trial.time->median_us < trials_[fastest_].time->median_us ? times_.size() - 1 : fastest_;
    }
  }

  [[nodiscard]] double p(std::size_t a, std::size_t b) const { return mann_whitney_p(times_[a], times_[b]); }
  // Of two wide distributions the one with the lower median may still be the slower one as a rule.
  [[nodiscard]] bool faster(std::size_t a, std::size_t b) const {
    return p(a, b) <= p_value_ && probability_faster(times_[a], times_[b]) > 0.5;
  }
  [[nodiscard]] std::size_t fastest() const noexcept { return fastest_; }
  [[nodiscard]] std::vector<std::size_t> tie_set() const {
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      if (i == fastest_ || !faster(fastest_, i)) {
        members.push_back(i);
      }
    }
    return members;
  }

 private:
  const std::vector<Trial>& trials_;
  double p_value_;
  std::vector<std::vector<double>> times_;
  std::size_t fastest_ = 0;
};

}  // namespace

bool finals_look_after(int rounds, const FinalsOptions& options) {
  const int first = std::min(options.min_rounds, options.rounds);
  return rounds >= options.rounds || (rounds >= first && (rounds - first) % std::max(1, options.rounds_per_look) == 0);
}

bool finals_are_settled(const FinalsResult& result, const FinalsOptions& options) {
  const Comparison compare(result, options);
  const std::vector<std::size_t> tied = compare.tie_set();
  const double lowest_us = result.trials[compare.fastest()].time->median_us;
  return tied.size() == 1 || std::all_of(tied.begin(), tied.end(), [&](std::size_t i) {
           const TimeSummary& time = *result.trials[i].time;
           return time.median_us <= (1 + options.tie_width) * lowest_us &&
                  relative_half_width(time) <= options.tie_width;
         });
}

void decide_finals(FinalsResult& result, const FinalsOptions& options) {
  const Comparison compare(result, options);
  std::vector<std::size_t> candidates = compare.tie_set();
  result.tie = candidates.size() > 1;
  auto standard =
      std::find_if(result.trials.begin(), result.trials.end(), [](const Trial& trial) { return trial.is_default; });
  if (standard == result.trials.end() && !options.stand_in.empty()) {
    standard = std::find_if(result.trials.begin(), result.trials.end(),
                            [&](const Trial& trial) { return trial.config.text() == options.stand_in; });
  }
  const auto first_by_text = [&] {
    return *std::min_element(candidates.begin(), candidates.end(), [&](std::size_t a, std::size_t b) {
      return result.trials[a].config.text() < result.trials[b].config.text();
    });
  };
  if (standard == result.trials.end()) {
    result.winner = first_by_text();
    result.confidence = 1.0;
    return;
  }
  result.baseline = standard->time;
  const auto index = static_cast<std::size_t>(standard - result.trials.begin());
  result.baseline_trial = index;
  if (std::find(candidates.begin(), candidates.end(), index) != candidates.end()) {
    result.winner = index;
    result.confidence = 0.5;
    return;
  }
  // One that ties with the fastest need not be faster than the baseline.
  candidates.erase(
      std::remove_if(candidates.begin(), candidates.end(), [&](std::size_t i) { return !compare.faster(i, index); }),
      candidates.end());
  result.winner = first_by_text();
  result.confidence = 1.0 - compare.p(result.winner, index) / 2.0;
}

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

}  // namespace pascaline
