#include "tuner/finals/known_energy.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

constexpr double kSameStateClock = 0.01;
constexpr double kSameStateC = 3;

std::optional<double> median_reading(const std::vector<Trial>& finalists, std::optional<double> Sample::*reading) {
  std::vector<double> readings;
  for (const Trial& trial : finalists) {
    for (const Sample& sample : trial.samples) {
      if (sample.counted() && sample.*reading) {
        readings.push_back(*(sample.*reading));
      }
    }
  }
  return readings.empty() ? std::nullopt : std::optional(median(std::move(readings)));
}

KnownEnergies state_of(const std::vector<Trial>& finalists) {
  KnownEnergies state;
  state.canary_us = finalists.empty() ? std::nullopt : finalists.front().canary_us;
  state.sm_clock_mhz = median_reading(finalists, &Sample::sm_clock_mhz);
  state.temperature_c = median_reading(finalists, &Sample::temperature_c);
  return state;
}

bool is_within(const std::optional<double>& then, const std::optional<double>& now, double difference) {
  return then && now ? std::abs(*now - *then) <= difference : !then && !now;
}

bool is_same_state(const KnownEnergies& then, const KnownEnergies& now) {
  return (now.canary_us || now.sm_clock_mhz) &&
         is_within(then.canary_us, now.canary_us, kSameStateClock * then.canary_us.value_or(0)) &&
         is_within(then.sm_clock_mhz, now.sm_clock_mhz, kSameStateClock * then.sm_clock_mhz.value_or(0)) &&
         is_within(then.temperature_c, now.temperature_c, kSameStateC);
}

}  // namespace

std::optional<KnownEnergies> energies_of(const std::vector<Trial>& finalists) {
  KnownEnergies known = state_of(finalists);
  for (const Trial& trial : finalists) {
    if (trial.energy_mj) {
      known.of_configs.emplace_back(trial.config.text(), *trial.energy_mj);
    }
  }
  return known.of_configs.empty() ? std::nullopt : std::optional(std::move(known));
}

std::optional<std::vector<double>> energies_again(const KnownEnergies& known, const std::vector<Trial>& finalists,
                                                  const std::vector<std::size_t>& wanted) {
  if (!is_same_state(known, state_of(finalists))) {
    return std::nullopt;
  }
  std::vector<double> energies;
  for (const std::size_t i : wanted) {
    const std::string config = finalists[i].config.text();
    const auto found = std::find_if(known.of_configs.begin(), known.of_configs.end(),
                                    [&](const auto& one) { return one.first == config; });
    if (found == known.of_configs.end()) {
      return std::nullopt;
    }
    energies.push_back(found->second);
  }
  return energies;
}

}  // namespace pascaline
