#include "tuner/replay/score.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

constexpr double kStartShare = 0.01;
constexpr double kEndShare = 0.95;
constexpr double kMaxKnots = 1e6;

double mean_of(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

ScoreScale::ScoreScale(const RecordedDomain& space)
    : descending_us_(space.times_us().rbegin(), space.times_us().rend()), ascending_us_(space.times_us()) {
  std::vector<double> all;
  std::vector<double> valid;
  std::vector<double> failed;
  for (const RecordedTrial& trial : space.trials()) {
    all.push_back(trial.cost_ms());
    (trial.status == TrialStatus::ok ? valid : failed).push_back(trial.cost_ms());
  }
  costs_ = median(all) > 0 && std::isfinite(mean_of(all));
  const double typical_ms = costs_ ? median(all) : 1;
  draw_ms_ =
      costs_ ? mean_of(valid) + static_cast<double>(failed.size()) / static_cast<double>(all.size()) * mean_of(failed)
             : 1;
  start_ms_ = static_cast<double>(draws_to(kStartShare)) * typical_ms;
  budget_ms_ = static_cast<double>(draws_to(kEndShare)) * typical_ms;
  interpolate();
}

double ScoreScale::cost_ms(const RecordedTrial& trial) const { return costs_ ? trial.cost_ms() : 1; }

// Draws until random search is expected to have come so far from the median to the optimum.
std::size_t ScoreScale::draws_to(double share) const {
  const double optimum = ascending_us_.front();
  const double target = optimum + (median(ascending_us_) - optimum) * (1 - share);
  const auto at = std::find_if(descending_us_.begin(), descending_us_.end(),
                               [&](double time_us) { return time_us <= target * (1 + 1e-12); });
  const auto i = static_cast<double>(at - descending_us_.begin());
  const double count = static_cast<double>(descending_us_.size());
  return static_cast<std::size_t>(std::max(1.0, std::ceil(i / (count + 1 - i))));
}

double ScoreScale::expected_us(double draws) const {
  const double count = static_cast<double>(descending_us_.size());
  const double rank = std::round(draws * (count + 1) / (draws + 1));
  return descending_us_[static_cast<std::size_t>(std::min(count - 1, rank))];
}

// Monotone cubic interpolation of what is expected at whole numbers of draws (Fritsch and Carlson, SIAM Journal on
// Numerical Analysis 1980).
void ScoreScale::interpolate() {
  const double last = std::clamp(std::ceil(budget_ms_ / draw_ms_) + 1, 2.0, kMaxKnots);
  for (double draws = 1; draws <= last; ++draws) {
    knots_.push_back(draws);
    values_.push_back(expected_us(draws));
  }
  const std::size_t count = knots_.size();
  slopes_.assign(count, 0);
  for (std::size_t i = 1; i + 1 < count; ++i) {
    const double left = values_[i] - values_[i - 1];
    const double right = values_[i + 1] - values_[i];
    if (left * right > 0) {
      slopes_[i] = 2 * left * right / (left + right);
    }
  }
}

double ScoreScale::random_us(double time_ms) const {
  const double draws = std::clamp(time_ms / draw_ms_, 1.0, knots_.back());
  const auto i = std::min(static_cast<std::size_t>(draws) - 1, knots_.size() - 2);
  const double t = draws - knots_[i];
  const double u = 1 - t;
  return values_[i] * (1 + 2 * t) * u * u + slopes_[i] * t * u * u + values_[i + 1] * t * t * (3 - 2 * t) -
         slopes_[i + 1] * t * t * u;
}

// The time of the median rank that the repeats had reached by then.
double ScoreScale::found_us(const std::vector<ReplayRun>& runs, double time_ms) const {
  std::vector<double> ranks;
  for (const ReplayRun& run : runs) {
    const auto done = std::upper_bound(run.cost_ms.begin(), run.cost_ms.end(), time_ms) - run.cost_ms.begin();
    const double best_us = done == 0 ? descending_us_.front() : run.best_us[static_cast<std::size_t>(done) - 1];
    const auto rank = std::lower_bound(ascending_us_.begin(), ascending_us_.end(), best_us) - ascending_us_.begin();
    ranks.push_back(std::min(static_cast<double>(rank), static_cast<double>(ascending_us_.size() - 1)));
  }
  return ascending_us_[static_cast<std::size_t>(std::round(median(ranks)))];
}

std::vector<double> ScoreScale::curve(const std::vector<ReplayRun>& runs) const {
  std::vector<double> points;
  for (int i = 0; i < kPoints; ++i) {
    const double time_ms = start_ms_ + (budget_ms_ - start_ms_) * i / (kPoints - 1);
    const double random = random_us(time_ms);
    const double room = random - ascending_us_.front();
    points.push_back(room > 0 ? (random - found_us(runs, time_ms)) / room : 0);
  }
  return points;
}

}  // namespace pascaline
