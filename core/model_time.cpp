#include "core/model_time.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <nlohmann/json.hpp>

#include "core/log_speedup.hpp"
#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

constexpr double kMinConfidenceOfFinals = 0.99;  // of a winner other than the default
constexpr double kMinRest = 0.01;                // of a time that is known so little that it might be 0

bool is_same_time(const TimeSummary& a, const TimeSummary& b) {
  return a.median_us == b.median_us && a.low_us == b.low_us && a.high_us == b.high_us && a.count == b.count;
}

// A part's ratio: the winner's time over the default's, and the standard error of its logarithm.
struct TimeRatio {
  double value = 1;
  double error = 0;
};

TimeRatio ratio_of(const ModelPart& part) {
  if (!part.with_winner || is_same_time(*part.with_winner, part.with_default) || !(part.with_winner->median_us > 0)) {
    return {};
  }
  const double value = part.with_winner->median_us / part.with_default.median_us;
  const double of_test = std::abs(std::log(value)) / std::max(1.0, normal_deviate(part.confidence));
  const auto speedup = log_speedup(*part.with_winner, part.with_default, part.confidence);
  if (!speedup) {  // the range of a few samples says little
    return {value, std::max(of_test, std::abs(std::log(value)) / kErrorsOf95)};
  }
  // Intervals of times that were not taken in turn, as by a search, leave out that the machine may have changed.
  const bool in_turn = part.confidence >= kMinConfidenceOfFinals;
  return {value, in_turn ? standard_error(*speedup) : std::max(standard_error(*speedup), of_test)};
}

// Relative; of an estimate, whose interval is a factor either way, that of its logarithm.
double half_width(const TimeSummary& time) {
  return time.count == 0 && time.low_us > 0 ? std::log(time.high_us / time.low_us) / 2 : relative_half_width(time);
}

// Ends of the interval of what is saved, relative to the default, of a saving with these standard errors. That by the
// ratios may be of either sign. That by the shares makes a saving larger or smaller and never turns it into a loss.
// Both together as G. Y. Zou and A. Donner, Construction of confidence limits about effect measures, Statistics in
// Medicine 27, 2008; or one after the other, where that is nearer to the saving.
struct Saving {
  double value = 0;
  double by_ratios = 0;
  double by_shares = 0;

  [[nodiscard]] double low() const {
    const double rest = 1 - value;
    const double of_ratios = rest * (std::exp(kErrorsOf95 * by_ratios / rest) - 1);
    if (!(value > 0)) {
      return value - std::hypot(of_ratios, kErrorsOf95 * by_shares);
    }
    const double factor = std::exp(-kErrorsOf95 * by_shares / value);
    const double together = value - std::hypot(of_ratios, value * (1 - factor));
    return of_ratios < value ? std::max(together, (value - of_ratios) * factor) : together;
  }
  /// `most`: if all time were that of the problem which gains most.
  [[nodiscard]] double high(double most) const {
    const double rest = 1 - value;
    const double of_ratios = rest * (1 - std::exp(-kErrorsOf95 * by_ratios / rest));
    const double of_shares = value > 0 ? value * (std::exp(kErrorsOf95 * by_shares / value) - 1) : 0;
    return value + std::hypot(of_ratios, std::min(of_shares, std::max(0.0, most - value)));
  }
};

}  // namespace

std::optional<TimeSummary> EstimatedDefaults::of(const std::string& problem) const {
  const auto found = us.find(problem);
  return found == us.end() ? std::nullopt
                           : std::optional(TimeSummary{found->second, found->second / factor, found->second * factor});
}

void to_json(nlohmann::json& json, const EstimatedDefaults& estimated) {
  json = {{"us", estimated.us}, {"factor", estimated.factor}};
}

void from_json(const nlohmann::json& json, EstimatedDefaults& estimated) {
  const auto positive = [](const nlohmann::json& value) {
    return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() > 0;
  };
  estimated = {};
  if (!json.is_object()) {
    return;
  }
  if (const auto times = json.find("us"); times != json.end() && times->is_object()) {
    for (const auto& [problem, time_us] : times->items()) {
      if (positive(time_us)) {
        estimated.us[problem] = time_us.get<double>();
      }
    }
  }
  if (const auto factor = json.find("factor"); factor != json.end() && positive(*factor)) {
    estimated.factor = std::max(estimated.factor, factor->get<double>());
  }
}

// The saving is the sum of shares times the problems' savings, whose derivative by a ratio is the share, and by a
// default's time relative to it the share times how far the ratio is from that of the model.
ModelTime model_time(std::span<const ModelPart> parts) {
  ModelTime time;
  double least_ratio = 1;
  for (const ModelPart& part : parts) {
    const double ratio = ratio_of(part).value;
    time.default_us += part.calls * part.with_default.median_us;
    time.best_us += part.calls * part.with_default.median_us * ratio;
    least_ratio = std::min(least_ratio, ratio);
  }
  if (!(time.default_us > 0) || !(time.best_us > 0)) {
    return time;
  }
  const double of_model = time.best_us / time.default_us;
  double by_ratios = 0;
  double by_shares = 0;
  for (const ModelPart& part : parts) {
    const double share = part.calls * part.with_default.median_us / time.default_us;
    if (share > 0) {
      const TimeRatio ratio = ratio_of(part);
      by_ratios = std::hypot(by_ratios, share * ratio.value * ratio.error);
      by_shares = std::hypot(by_shares, share * (ratio.value - of_model) * half_width(part.with_default) / kErrorsOf95);
    }
  }
  const Saving saving{1 - of_model, by_ratios, by_shares};
  time.speedup_low = 1 / (1 - saving.low());
  time.speedup_high = 1 / std::max(kMinRest * of_model, 1 - saving.high(1 - least_ratio));
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
