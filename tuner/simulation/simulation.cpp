#include "tuner/simulation/simulation.hpp"

#include <utility>

#include "tuner/simulation/simulated_builder.hpp"

namespace pascaline {

Simulation::Simulation(const SimulatedWorld& world, std::vector<DeviceInfo> devices)
    : world_(world), devices_(std::move(devices)) {}

SweepServices Simulation::services() {
  labs_.clear();
  return {clock_, [this] { return devices_; },
          [this](const CompilePoolOptions& options) {
            return std::make_unique<SimulatedBuilder>(options, world_, *clock_);
          },
          [this](MeasureClientOptions options) {
            auto lab = std::make_unique<SimulatedLab>(std::move(options), world_, *clock_);
            labs_.push_back(lab.get());
            return lab;
          }};
}

}  // namespace pascaline
