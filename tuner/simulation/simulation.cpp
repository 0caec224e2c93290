#include "tuner/simulation/simulation.hpp"

#include <utility>

namespace pascaline {

Simulation::Simulation(const SimulatedWorld& world, std::vector<DeviceInfo> devices)
    : world_(world), devices_(std::move(devices)) {}

SweepServices Simulation::services() {
  return {clock_, [this] { return devices_; },
          [this](const CompilePoolOptions& options) {
            auto builder = std::make_unique<SimulatedBuilder>(options, world_, *clock_);
            builders_.push_back(builder.get());
            return builder;
          },
          [this](MeasureClientOptions options) {
            auto lab = std::make_unique<SimulatedLab>(std::move(options), world_, *clock_);
            labs_.push_back(lab.get());
            return lab;
          }};
}

}  // namespace pascaline
