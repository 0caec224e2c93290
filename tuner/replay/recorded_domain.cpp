#include "tuner/replay/recorded_domain.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kFewestSamples = 4;  // of which a median is one

SearchDomain domain_of(const RecordedSpace& space) {
  std::vector<Axis> axes;
  for (const RecordedParameter& parameter : space.parameters) {
    axes.push_back({parameter.name, parameter.values});
  }
  std::vector<Point> points;
  for (const RecordedTrial& trial : space.trials) {
    points.push_back(trial.indices);
  }
  return {std::move(axes), points};
}

}  // namespace

RecordedDomain::RecordedDomain(const RecordedSpace& space) : trials_(space.trials), domain_(domain_of(space)) {
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    index_.emplace(trials_[i].indices, i);
    if (trials_[i].status == TrialStatus::ok) {
      times_us_.push_back(trials_[i].time_us);
    }
  }
  if (times_us_.empty()) {
    throw Error(
        fmt::format("the recorded space '{}' has no working configuration: there is nothing to find", space.name));
  }
  std::sort(times_us_.begin(), times_us_.end());
  bool all_recorded = true;
  for (const RecordedTrial& trial : trials_) {
    const bool ok = trial.status == TrialStatus::ok;
    medians_us_.push_back(ok && !trial.samples_us.empty() ? median(trial.samples_us) : 0);
    all_recorded = all_recorded && (!ok || trial.samples_us.size() >= kFewestSamples);
    if (ok && medians_us_.back() > 0) {
      best_median_us_ = std::min(best_median_us_.value_or(medians_us_.back()), medians_us_.back());
    }
  }
  if (!all_recorded) {
    best_median_us_.reset();
  }
}

const RecordedTrial& RecordedDomain::trial(const Point& point) const { return trials_[index_.at(point)]; }

Observation RecordedDomain::observation(const Point& point) const {
  const RecordedTrial& found = trial(point);
  return {found.status, found.status == TrialStatus::ok ? found.time_us : 0};
}

}  // namespace pascaline
