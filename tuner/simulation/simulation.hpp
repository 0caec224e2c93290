#pragma once

#include <memory>
#include <vector>

#include "tuner/services/services.hpp"
#include "tuner/simulation/simulated_builder.hpp"
#include "tuner/simulation/simulated_clock.hpp"
#include "tuner/simulation/simulated_lab.hpp"
#include "tuner/simulation/simulated_world.hpp"

namespace pascaline {

/// The services of a sweep on a virtual clock: a whole sweep runs in milliseconds, with the same budgets and ends.
class Simulation {
 public:
  /// `world` must outlive it.
  Simulation(const SimulatedWorld& world, std::vector<DeviceInfo> devices);

  [[nodiscard]] SimulatedClock& clock() noexcept { return *clock_; }
  /// For `run_sweep`; the simulation must outlive them.
  [[nodiscard]] SweepServices services();
  /// The labs of the sweep that runs, in the order of its devices.
  [[nodiscard]] const std::vector<SimulatedLab*>& labs() const noexcept { return labs_; }
  /// Its builders, one for each kind of device.
  [[nodiscard]] const std::vector<SimulatedBuilder*>& builders() const noexcept { return builders_; }

 private:
  const SimulatedWorld& world_;
  std::vector<DeviceInfo> devices_;
  std::shared_ptr<SimulatedClock> clock_ = std::make_shared<SimulatedClock>();
  std::vector<SimulatedLab*> labs_;
  std::vector<SimulatedBuilder*> builders_;
};

}  // namespace pascaline
