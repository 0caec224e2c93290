#include "core/model_time.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/log_speedup.hpp"
#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

constexpr double kErrorsOf95 = 1.96;

bool is_same_time(const TimeSummary& a, const TimeSummary& b) {
  return a.median_us == b.median_us && a.low_us == b.low_us && a.high_us == b.high_us && a.count == b.count;
}

// Of a part: the winner's time over the default's, and the standard error of its logarithm.
struct TimeRatio {
  double value = 1;
  double error = 0;
};

TimeRatio ratio_of(const ModelPart& part) {
  if (!part.with_winner || is_same_time(*part.with_winner, part.with_default) || !(part.with_winner->median_us > 0)) {
    return {};
  }
  const double value = part.with_winner->median_us / part.with_default.median_us;
  const auto speedup = log_speedup(*part.with_winner, part.with_default, part.confidence);
  // The range of a few samples says little: the speedup may as well be none.
  return {value, speedup ? standard_error(*speedup) : std::abs(std::log(value)) / kErrorsOf95};
}

}  // namespace

TimeSummary estimated_time(double time_us) noexcept { return {time_us, time_us / 2, time_us * 2, 0}; }

// Of best / default = sum of shares times ratios, whose derivative by a ratio is the share, and by a default's time
// relative to it the share times how far the ratio is from that of the model.
ModelTime model_time(std::span<const ModelPart> parts) {
  ModelTime time;
  for (const ModelPart& part : parts) {
    time.default_us += part.calls * part.with_default.median_us;
    time.best_us += part.calls * part.with_default.median_us * ratio_of(part).value;
  }
  if (!(time.default_us > 0) || !(time.best_us > 0)) {
    return time;
  }
  const double of_model = time.best_us / time.default_us;
  double variance = 0;
  for (const ModelPart& part : parts) {
    const double share = part.calls * part.with_default.median_us / time.default_us;
    if (!(share > 0)) {
      continue;
    }
    const TimeRatio ratio = ratio_of(part);
    const double of_default = relative_half_width(part.with_default) / kErrorsOf95;
    variance += std::pow(share * ratio.value * ratio.error, 2);
    variance += std::pow(share * (ratio.value - of_model) * of_default, 2);
  }
  const double factor = std::exp(kErrorsOf95 * std::sqrt(variance) / of_model);
  time.speedup_low = time.speedup() / factor;
  time.speedup_high = time.speedup() * factor;
  return time;
}

std::vector<ModelPoint> model_curve(std::span<const ProblemHistory> problems, double end_s) {
  struct Change {
    double elapsed_s = 0;
    std::size_t problem = 0;
    double ratio = 1;
  };
  std::vector<Change> changes;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    for (const DecisionPoint& decision : problems[i].decisions) {
      changes.push_back({std::max(0.0, decision.elapsed_s), i, decision.ratio});
    }
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.elapsed_s < b.elapsed_s; });
  std::vector<double> ratios(problems.size(), 1);
  const double default_us = std::transform_reduce(problems.begin(), problems.end(), 0.0, std::plus<>(),
                                                  [](const ProblemHistory& problem) { return problem.default_us; });
  const auto point_at = [&](double elapsed_s) {
    double model_us = 0;
    for (std::size_t i = 0; i < problems.size(); ++i) {
      model_us += problems[i].default_us * ratios[i];
    }
    return ModelPoint{elapsed_s, model_us, default_us};
  };
  auto next = changes.begin();
  const auto take_until = [&](double elapsed_s) {
    for (; next != changes.end() && next->elapsed_s <= elapsed_s; ++next) {
      ratios[next->problem] = next->ratio;
    }
  };
  std::vector<ModelPoint> points;
  take_until(0);
  points.push_back(point_at(0));
  while (next != changes.end()) {
    const double elapsed_s = next->elapsed_s;
    take_until(elapsed_s);
    if (ModelPoint point = point_at(elapsed_s); point.model_us != points.back().model_us) {
      points.push_back(point);
    }
  }
  points.push_back(point_at(std::max(end_s, points.back().elapsed_s)));
  return points;
}

}  // namespace pascaline
