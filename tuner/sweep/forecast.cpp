#include "tuner/sweep/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/util/duration.hpp"

namespace pascaline {
namespace {

// A look that is cut short comes to a provisional result, if not to too short a time.
constexpr double kShortestLook = 0.25;

// An estimate, to two figures of what a person would say.
double rounded_s(double seconds) {
  const double step = seconds < 60 ? 5 : seconds < 600 ? 30 : seconds < 3600 ? 60 : seconds < 36000 ? 600 : 3600;
  return std::ceil(seconds / step) * step;
}

}  // namespace

double seconds_for(std::span<const FirstLook> looks, double devices) {
  double seconds = 0;
  for (const FirstLook& look : looks) {
    seconds += look.seconds;
  }
  return seconds / std::max(1.0, devices);
}

std::optional<Forecast> forecast(std::span<const FirstLook> looks, const SeenBefore& seen, const TimeForLooks& time) {
  Forecast result;
  result.limit_s = time.limit_s;
  result.needed_s = seconds_for(looks, time.devices);
  result.problems = seen.problems + looks.size();
  if (result.needed_s <= time.limit_s) {
    return std::nullopt;
  }
  result.reached = seen.problems;
  double reached_us = seen.model_us;
  double all_us = seen.model_us;
  double left_s = time.limit_s * time.devices;
  for (const FirstLook& look : looks) {
    const bool reached = left_s >= look.seconds || left_s > kShortestLook * look.seconds;
    left_s = left_s >= look.seconds ? left_s - look.seconds : 0;  // what comes after one that is cut short has none
    result.reached += reached ? 1 : 0;
    reached_us += reached ? look.model_us : 0;
    all_us += look.model_us;
  }
  if (result.reached == result.problems) {
    return std::nullopt;
  }
  if (all_us > 0) {
    result.reached_share = reached_us / all_us;
  }
  return result;
}

std::string forecast_text(const Forecast& forecast) {
  const std::string needed = duration_text(rounded_s(forecast.needed_s));
  if (forecast.reached == 0) {
    const std::string shapes =
        forecast.problems == 1 ? "the shape" : fmt::format("any of the {} shapes", forecast.problems);
    return fmt::format("the time limit is too short to reach {} here; about {} {}", shapes, needed,
                       forecast.problems == 1 ? "are needed" : "reach all");
  }
  const std::string share =
      forecast.reached_share ? fmt::format(", {:.0f} % of the model's time", 100 * *forecast.reached_share) : "";
  return fmt::format("{} reaches about {} of {} shapes here{}; about {} reach all", duration_text(forecast.limit_s),
                     forecast.reached, forecast.problems, share, needed);
}

}  // namespace pascaline
