#include "tuner/replay/recorded_race.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "core/util/statistics.hpp"
#include "tuner/measure/race.hpp"
#include "tuner/search/searcher.hpp"

namespace pascaline {
namespace {

constexpr double kNear = 1.01;

double total_ms(const RecordedTrial& trial) {
  return std::accumulate(trial.samples_us.begin(), trial.samples_us.end(), 0.0) / 1000;
}

/// Configurations sampled one after the other, and the fastest of them.
class Contest {
 public:
  Contest(const RecordedDomain& space, const RecordedRace& race, SampleRule rule)
      : space_(space), race_(race), rule_(rule), near_us_(kNear * space.best_median_us().value()) {
    race_.measure.race_error = rule == SampleRule::race ? race.measure.race_error : 0;
  }

  /// Samples a configuration: the median that a search sees.
  double sample(const Point& point) {
    const RecordedTrial& trial = space_.trial(point);
    std::vector<double> times_us = trial.samples_us;
    std::mt19937_64 draw(race_.seed * 1'000'003 + ++sampled_);
    std::shuffle(times_us.begin(), times_us.end(), draw);
    const double best_us = finalists_.empty() ? 0 : finalists_.front().median_us;
    const Race race(best_us, race_.measure.race_error, race_.measure.target_half_width, noise_);
    std::vector<Sample> samples;
    double taken_ms = 0;
    SamplingVerdict verdict = SamplingVerdict::more;
    for (std::size_t i = 0; i < times_us.size() && verdict == SamplingVerdict::more; ++i) {
      samples.emplace_back().time_us = times_us[i];
      taken_ms += times_us[i] / 1000;
      if (rule_ != SampleRule::all) {
        verdict = judge_samples(samples, 1, taken_ms, race_.measure, race);
      }
    }
    spent_ms_ += taken_ms + race_.measure.warm_up * times_us.front() / 1000;
    noise_.add(samples);
    const double median_us = summarize(samples).median_us;
    if (verdict != SamplingVerdict::dropped) {
      enter({median_us, space_.median_us(point), total_ms(trial) - taken_ms});
    }
    return median_us;
  }

  /// Whether the finals, if they were held now, would find one that is within 1 %.
  [[nodiscard]] bool is_near() const {
    return std::ranges::any_of(finalists_, [&](const Finalist& each) { return each.true_us <= near_us_; });
  }
  /// Of launches, with the finals held now.
  [[nodiscard]] double spent_ms() const {
    double all_ms = spent_ms_;
    for (const Finalist& each : finalists_) {
      all_ms += each.left_ms;
    }
    return all_ms;
  }

 private:
  struct Finalist {
    double median_us = 0;
    double true_us = 0;  // by all samples
    double left_ms = 0;  // of samples not taken
  };

  void enter(const Finalist& finalist) {
    const auto place = std::upper_bound(finalists_.begin(), finalists_.end(), finalist,
                                        [](const Finalist& a, const Finalist& b) { return a.median_us < b.median_us; });
    finalists_.insert(place, finalist);
    finalists_.resize(std::min(finalists_.size(), race_.finalists));
  }

  const RecordedDomain& space_;
  RecordedRace race_;
  SampleRule rule_;
  double near_us_;
  NoiseScale noise_;
  std::vector<Finalist> finalists_;  // fastest first
  std::uint64_t sampled_ = 0;
  double spent_ms_ = 0;
};

}  // namespace

double sampling_ms_to_1_percent(const RecordedDomain& space, const RecordedRace& race, SampleRule rule) {
  SearchOptions search;
  search.seed = race.seed;
  search.expected_trials = static_cast<int>(race.trials);
  const auto strategy = make_searcher(race.searcher, space.domain(), search);
  Contest contest(space, race, rule);
  for (std::size_t count = 0; count < race.trials; ++count) {
    const std::vector<Point> points = strategy->propose(1);
    if (points.empty()) {
      break;
    }
    Observation observation = space.observation(points.front());
    if (has_time(observation.status)) {
      observation.time_us = contest.sample(points.front());
      if (contest.is_near()) {
        return contest.spent_ms();
      }
    }
    strategy->observe(points.front(), observation);
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace pascaline
