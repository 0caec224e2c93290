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
  [[nodiscard]] bool faster(std::size_t a, std::size_t b) const { return p(a, b) <= p_value_ && oftener_faster(a, b); }
  [[nodiscard]] bool oftener_faster(std::size_t a, std::size_t b) const {
    return probability_faster(times_[a], times_[b]) > 0.5;
  }
  [[nodiscard]] std::size_t fastest() const noexcept { return fastest_; }
  [[nodiscard]] double median_us(std::size_t i) const { return trials_[i].time->median_us; }
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

constexpr int kFewestShare = 4;  // of the earlier finals' samples, one in so many

/// Decides finals that are over: see `decide_finals`.
class Decider {
 public:
  Decider(FinalsResult& result, const FinalsOptions& options)
      : result_(result), options_(options), compare_(result, options), candidates_(compare_.tie_set()) {
    if (options.standing) {
      standing_ = place_of(options.standing->config);
    }
  }

  void decide() {
    result_.tie = candidates_.size() > 1;
    const std::optional<std::size_t> baseline = baseline_place();
    if (!baseline) {
      leave_better_than_standing();
      result_.winner = chosen();
      result_.confidence = 1.0;
      return;
    }
    result_.baseline = result_.trials[*baseline].time;
    result_.baseline_trial = baseline;
    if (standing_ == baseline) {  // what beats the baseline is to be shown anew
      standing_.reset();
    }
    if (is_candidate(*baseline)) {
      const bool holds = standing_holds(*baseline);
      result_.winner = holds ? *standing_ : *baseline;
      result_.confidence = holds ? of_both_ : 0.5;
    } else if (standing_ && is_candidate(*standing_) && !compare_.faster(*standing_, *baseline) &&
               standing_holds(*baseline)) {
      result_.winner = *standing_;
      result_.confidence = of_both_;
    } else {
      // One that ties with the fastest need not be faster than the baseline, nor have a lower median where ranks say
      // so.
      std::erase_if(candidates_, [&](std::size_t i) {
        return !compare_.faster(i, *baseline) || compare_.median_us(i) > compare_.median_us(*baseline);
      });
      leave_better_than_standing();
      result_.winner = chosen();
      result_.confidence = 1.0 - compare_.p(result_.winner, *baseline) / 2.0;
    }
    if (result_.winner == standing_) {
      const auto earlier = earlier_on(*baseline);
      const auto now = speedup_now(*baseline);
      result_.stays = earlier && (!now || earlier->error < now->error || has_few_samples());
    }
  }

 private:
  [[nodiscard]] std::optional<std::size_t> place_of(const std::string& config) const {
    const auto found = std::find_if(result_.trials.begin(), result_.trials.end(),
                                    [&](const Trial& trial) { return trial.config.text() == config; });
    return found == result_.trials.end() ? std::nullopt : std::optional<std::size_t>(found - result_.trials.begin());
  }
  [[nodiscard]] std::optional<std::size_t> baseline_place() const {
    const auto standard =
        std::find_if(result_.trials.begin(), result_.trials.end(), [](const Trial& trial) { return trial.is_default; });
    return standard != result_.trials.end() ? std::optional<std::size_t>(standard - result_.trials.begin())
           : options_.stand_in.empty()      ? std::nullopt
                                            : place_of(options_.stand_in);
  }
  [[nodiscard]] bool is_candidate(std::size_t i) const {
    return std::find(candidates_.begin(), candidates_.end(), i) != candidates_.end();
  }
  // The fastest, at least, is among them.
  void leave_better_than_standing() {
    if (standing_ && !is_candidate(*standing_)) {
      const auto no_better = [&](std::size_t i) { return i != compare_.fastest() && !compare_.faster(i, *standing_); };
      std::erase_if(candidates_, no_better);
    }
  }
  [[nodiscard]] std::size_t chosen() const {
    if (standing_ && is_candidate(*standing_)) {
      return *standing_;
    }
    return *std::min_element(candidates_.begin(), candidates_.end(), [&](std::size_t a, std::size_t b) {
      return result_.trials[a].config.text() < result_.trials[b].config.text();
    });
  }
  [[nodiscard]] std::optional<LogSpeedup> earlier_on(std::size_t baseline) const {
    return earlier_speedup(*options_.standing, result_.trials[baseline].config.text(),
                           result_.trials[*standing_].canary_us);
  }
  [[nodiscard]] std::optional<LogSpeedup> speedup_now(std::size_t baseline) const {
    const double p_half = compare_.p(*standing_, baseline) / 2;
    return log_speedup(*result_.trials[*standing_].time, *result_.trials[baseline].time,
                       compare_.oftener_faster(*standing_, baseline) ? 1 - p_half : p_half);
  }
  // Too few for their interval to be taken at its word beside that of the earlier finals.
  [[nodiscard]] bool has_few_samples() const {
    return kFewestShare * result_.trials[*standing_].time->count < options_.standing->time.count;
  }
  // Whether it is faster than the baseline by both finals, though not by these alone.
  [[nodiscard]] bool standing_holds(std::size_t baseline) {
    if (!standing_ || compare_.faster(baseline, *standing_)) {
      return false;
    }
    const auto earlier = earlier_on(baseline);
    const auto now = speedup_now(baseline);
    of_both_ = !earlier ? 0 : now ? confidence_of_both(*earlier, *now) : confidence_of(*earlier);
    return of_both_ >= 1 - options_.p_value / 2;
  }

  FinalsResult& result_;
  const FinalsOptions& options_;
  Comparison compare_;
  std::vector<std::size_t> candidates_;  ///< the tie set
  std::optional<std::size_t> standing_;  ///< the winner of earlier finals, if it is a finalist
  double of_both_ = 0;                   ///< confidence of the earlier finals and these together
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

void decide_finals(FinalsResult& result, const FinalsOptions& options) { Decider(result, options).decide(); }

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
