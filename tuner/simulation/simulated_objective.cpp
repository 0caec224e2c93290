#include "tuner/simulation/simulated_objective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tuner/monitor/energy.hpp"
#include "tuner/monitor/sustained.hpp"
#include "tuner/sweep/known_energy.hpp"

namespace pascaline {
namespace {

constexpr double kLongestWaitForPower = 3;

/// The windows of one comparison.
class SimulatedWindows {
 public:
  SimulatedWindows(FinalsResult& result, const FinalsOptions& options, DeviceMonitor& monitor,
                   const std::function<TimedWork(const Trial&)>& work_of)
      : result_(result), options_(options), monitor_(monitor), work_of_(work_of) {}

  void decide() {
    const ObjectiveOptions& objective = options_.objective;
    ObjectiveDecision& decision = result_.by_objective.emplace();
    decision.objective = objective.objective;
    const double window_s = window_seconds(objective, options_.energy_window_ms);
    const double least_s = window_s * objective.min_rounds * static_cast<double>(result_.trials.size());
    if (!monitor_.has_time_for(least_s)) {
      decision.out_of_time = true;
      decision.undecided = "there was no time left for it";
      return;
    }
    for (std::size_t i = 0; i < result_.trials.size(); ++i) {
      decision.contenders.push_back({i, {}});
    }
    ObjectiveRounds rounds(decision, result_.trials, objective, kept());
    for (std::vector<std::size_t> turns = rounds.next(); !turns.empty(); turns = rounds.next()) {
      if (rounds.rounds() >= objective.min_rounds &&
          !monitor_.has_time_for(window_s * static_cast<double>(turns.size()))) {
        break;
      }
      for (const std::size_t turn : turns) {
        Contender& contender = decision.contenders[turn];
        const bool first = rounds.rounds() == 0 && turn == turns.front();
        const std::optional<double> value = window(result_.trials[contender.trial], first, decision.undecided);
        if (!value) {
          decision.out_of_time = monitor_.time_is_up();
          return;
        }
        contender.values.push_back(*value);
      }
    }
    for (const Contender& contender : decision.contenders) {
      Trial& trial = result_.trials[contender.trial];
      const bool by_power = needs_power(decision.objective);
      (by_power ? trial.energy_mj : trial.sustained_us) =
          score_of(by_power ? Objective::energy : decision.objective, contender, trial);
    }
    decide_objective(decision, result_.trials, result_.baseline_trial, objective, result_.winner);
  }

  // Those of earlier finals where these still hold.
  void take_energies() {
    const std::vector<std::size_t> wanted = kept();
    const auto known = options_.energies ? energies_again(*options_.energies, result_.trials, wanted) : std::nullopt;
    result_.energies_again = known.has_value();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      Trial& trial = result_.trials[wanted[i]];
      if (known) {
        trial.energy_mj = (*known)[i];
        trial.reason = "its energy is what the finals before measured";
      } else if (monitor_.has_time_for(kLongestWaitForPower + options_.energy_window_ms / 1000)) {
        trial.energy_mj =
            measure_energy_mj(monitor_, work_of_(trial), trial.time->median_us, options_.energy_window_ms);
      }
    }
  }

 private:
  [[nodiscard]] std::vector<std::size_t> kept() const {
    std::vector<std::size_t> kept{result_.winner};
    if (result_.baseline_trial && *result_.baseline_trial != result_.winner) {
      kept.push_back(*result_.baseline_trial);
    }
    return kept;
  }

  [[nodiscard]] std::optional<double> window(const Trial& trial, bool first, std::string& why_not) {
    const ObjectiveOptions& objective = options_.objective;
    if (!needs_power(objective.objective)) {
      SustainedOptions sustained;
      sustained.limit_s = first ? objective.sustain_first_s : objective.sustain_again_s;
      sustained.window_s = objective.sustain_window_s;
      sustained.max_temperature_c = objective.max_temperature_c;
      SustainedWindow window = measure_sustained(monitor_, work_of_(trial), trial.time->median_us, sustained, {});
      why_not = std::move(window.why_not);
      return window.median_us;
    }
    const EnergyWindow window =
        measure_energy_window(monitor_, work_of_(trial), trial.time->median_us, options_.energy_window_ms);
    if (!window.energy_mj || !window.whole) {
      why_not = "the card stopped reporting its power";
      return std::nullopt;
    }
    if (!window.changed) {
      why_not = fmt::format("the card's power reading is stuck at {:.3g} W",
                            sane_power_w(monitor_.read_sensors()).value_or(0));
      return std::nullopt;
    }
    return window.energy_mj;
  }

  FinalsResult& result_;
  const FinalsOptions& options_;
  DeviceMonitor& monitor_;
  const std::function<TimedWork(const Trial&)>& work_of_;
};

}  // namespace

void decide_by_objective(FinalsResult& result, const FinalsOptions& options, DeviceMonitor& monitor,
                         const std::function<TimedWork(const Trial&)>& work_of) {
  SimulatedWindows windows(result, options, monitor, work_of);
  if (options.objective.objective != Objective::time) {
    windows.decide();
  } else if (options.energy_window_ms > 0) {
    windows.take_energies();
  }
}

}  // namespace pascaline
