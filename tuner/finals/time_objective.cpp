#include <algorithm>

#include "core/util/statistics.hpp"
#include "tuner/finals/objective.hpp"

namespace pascaline {
namespace {

constexpr int kMinShare = 4;  // of the earlier finals' samples, one in so many

std::vector<double> counted_times(const Trial& trial) {
  std::vector<double> times;
  for (const Sample& sample : trial.samples) {
    if (sample.counted()) {
      times.push_back(sample.time_us);
    }
  }
  return times;
}

/// Compares trials by the Mann-Whitney test of their samples. Of those that cannot be distinguished the first by the
/// configuration's text comes first. The incumbent is the winner of earlier finals, `FinalsOptions::standing`.
class TimeComparison final : public ContenderComparison {
 public:
  TimeComparison(const std::vector<Trial>& trials, const FinalsOptions& options)
      : ContenderComparison(trials.size()), trials_(trials), options_(options) {
    std::ranges::transform(trials, std::back_inserter(times_), counted_times);
  }

  [[nodiscard]] double score(std::size_t i) const override { return trials_[i].time->median_us; }
  // The one with the lower median of two wide distributions may still be the slower one as a rule.
  [[nodiscard]] bool better(std::size_t a, std::size_t b) const override {
    return p(a, b) <= options_.p_value / options_.looks().count() && more_often_faster(a, b);
  }
  /// True if the earlier finals know better than these samples by how much their winner, `standing`, is faster. The
  /// interval of too few samples does not compare with theirs.
  [[nodiscard]] bool knows_less(std::size_t standing, std::size_t baseline) const {
    const auto earlier = earlier_on(standing, baseline);
    const auto now = speedup_on(standing, baseline);
    const bool few = kMinShare * trials_[standing].time->count < options_.standing->time.count;
    return earlier && (!now || earlier->error < now->error || few);
  }

 protected:
  [[nodiscard]] double p(std::size_t a, std::size_t b) const override { return mann_whitney_p(times_[a], times_[b]); }
  [[nodiscard]] bool known_alike(std::size_t i) const override {
    return score(i) <= (1 + options_.tie_width) * score(best()) &&
           relative_half_width(*trials_[i].time) <= options_.tie_width;
  }
  // One that ties with the fastest need not be faster than the baseline, nor have a lower median where ranks say so.
  [[nodiscard]] bool beats(std::size_t i, std::size_t baseline) const override {
    return better(i, baseline) && score(i) <= score(baseline);
  }
  // It is faster than the baseline by both finals, though not by these alone.
  [[nodiscard]] std::optional<double> holds(std::size_t standing, std::size_t baseline) const override {
    const auto earlier = better(baseline, standing) ? std::nullopt : earlier_on(standing, baseline);
    if (!earlier) {
      return std::nullopt;
    }
    const auto now = speedup_on(standing, baseline);
    const double of_both = now ? confidence_of_both(*earlier, *now) : confidence_of(*earlier);
    return of_both >= 1 - options_.p_value / 2 ? std::optional(of_both) : std::nullopt;
  }
  [[nodiscard]] bool comes_first(std::size_t a, std::size_t b) const override {
    return trials_[a].config.text() < trials_[b].config.text();
  }

 private:
  [[nodiscard]] bool more_often_faster(std::size_t a, std::size_t b) const {
    return probability_faster(times_[a], times_[b]) > 0.5;
  }
  [[nodiscard]] std::optional<LogSpeedup> earlier_on(std::size_t standing, std::size_t baseline) const {
    return earlier_speedup(*options_.standing, trials_[baseline].config.text(), trials_[standing].canary_us);
  }
  [[nodiscard]] std::optional<LogSpeedup> speedup_on(std::size_t standing, std::size_t baseline) const {
    const double p_half = p(standing, baseline) / 2;
    return log_speedup(*trials_[standing].time, *trials_[baseline].time,
                       more_often_faster(standing, baseline) ? 1 - p_half : p_half);
  }

  const std::vector<Trial>& trials_;
  const FinalsOptions& options_;
  std::vector<std::vector<double>> times_;
};

/// Median time of a launch, by the rounds that every finals have.
class TimeObjective final : public FinalsObjective {
 public:
  [[nodiscard]] Objective id() const noexcept override { return Objective::time; }
  [[nodiscard]] bool by_time_alone() const noexcept override { return true; }
  [[nodiscard]] SampleKind sampling() const noexcept override { return SampleKind::launches; }
  [[nodiscard]] double window_s(const FinalsOptions& /*options*/) const override { return 0; }
  void note(Trial& /*trial*/, const Contender& /*contender*/) const override {}
  [[nodiscard]] std::unique_ptr<ContenderComparison> compare(const std::vector<Contender>& /*contenders*/,
                                                             const std::vector<Trial>& trials,
                                                             const FinalsOptions& options) const override {
    return std::make_unique<TimeComparison>(trials, options);
  }
};

std::optional<std::size_t> index_of_config(const std::vector<Trial>& trials, const std::string& config) {
  const auto found = std::ranges::find(trials, config, [](const Trial& trial) { return trial.config.text(); });
  return found == trials.end() ? std::nullopt : std::optional<std::size_t>(found - trials.begin());
}

std::optional<std::size_t> index_of_baseline(const std::vector<Trial>& trials, const FinalsOptions& options) {
  const auto found = std::ranges::find(trials, true, &Trial::is_default);
  return found != trials.end()      ? std::optional<std::size_t>(found - trials.begin())
         : options.stand_in.empty() ? std::nullopt
                                    : index_of_config(trials, options.stand_in);
}

}  // namespace

const FinalsObjective& time_objective() {
  static const TimeObjective time;
  return time;
}

void decide_finals(FinalsResult& result, const FinalsOptions& options) {
  const TimeComparison compare(result.trials, options);
  const auto baseline = index_of_baseline(result.trials, options);
  auto standing = options.standing ? index_of_config(result.trials, options.standing->config) : std::nullopt;
  if (standing == baseline) {  // what beats the baseline is to be shown again
    standing.reset();
  }
  const ContenderComparison::Choice choice = compare.decide(baseline, standing);
  result.winner = choice.winner;
  result.confidence = choice.confidence;
  result.tie = choice.tie;
  if (baseline) {
    result.baseline = result.trials[*baseline].time;
    result.baseline_trial = baseline;
    result.stays = result.winner == standing ? compare.knows_less(*standing, *baseline) : result.stays;
  }
}

}  // namespace pascaline
