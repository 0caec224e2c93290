#include "db/outdated_winner.hpp"

#include <fmt/format.h>

namespace pascaline {
namespace {

// Finals compare by energy what is up to so many times as slow as the fastest, by sustained time what is nearer to it.
constexpr double kMaxTimesAsSlow = 1.5;

}  // namespace

std::optional<double> stored_value(const Trial& trial, Objective objective) {
  switch (objective) {
    case Objective::time:
      return trial.time ? std::optional(trial.time->median_us) : std::nullopt;
    case Objective::energy:
      return trial.energy_mj;
    case Objective::edp:
      return trial.energy_mj && trial.time ? std::optional(*trial.energy_mj * trial.time->median_us) : std::nullopt;
    case Objective::sustained:
      return trial.sustained_us;
  }
  return std::nullopt;
}

std::optional<std::string> why_outdated(const Winner& winner, const Winner& by_time) {
  if (winner.objective == Objective::time || winner.trial.config == by_time.trial.config) {
    return std::nullopt;
  }
  const auto value = stored_value(winner.trial, winner.objective);
  Trial fastest;  // with what is known of its configuration
  fastest.time = by_time.trial.time;
  fastest.energy_mj = by_time.trial.energy_mj ? by_time.trial.energy_mj : by_time.known_energy_mj;
  fastest.sustained_us = by_time.trial.sustained_us ? by_time.trial.sustained_us : by_time.known_sustained_us;
  const auto of_fastest = stored_value(fastest, winner.objective);
  if (value && of_fastest && *value > *of_fastest) {
    return fmt::format("outdated: the winner by time is better by {0}, too ({1:.4g} {3} against {2:.4g} {3})",
                       phrase_of(winner.objective), *of_fastest, *value, unit_of(winner.objective));
  }
  const bool is_compared_default = winner.trial.is_default && value && of_fastest;  // which may be as slow as it likes
  if (!is_compared_default && winner.trial.time && by_time.trial.time && by_time.trial.time->median_us > 0) {
    const double times = winner.trial.time->median_us / by_time.trial.time->median_us;
    if (times > kMaxTimesAsSlow) {
      return fmt::format("outdated: it takes {:.2f} times as long as the winner by time", times);
    }
  }
  return std::nullopt;
}

}  // namespace pascaline
