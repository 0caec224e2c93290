#include "tuner/static_model/energy_estimate.hpp"

#include <algorithm>
#include <memory>

namespace pascaline {
namespace {

constexpr double kOfEach = 0.25;  // of a busy card's power: what it takes at rest, and each of what is busy

}  // namespace

double relative_energy(const Estimate& estimate, double time_us) noexcept {
  // What looks busier than there was time for was estimated too high.
  const auto busy = [&](double us) { return std::min(us, time_us); };
  return kOfEach * (time_us + busy(estimate.compute_us) + busy(estimate.shared_us) + busy(estimate.global_us));
}

EnergyEstimator energy_estimator(const BoundSpace& space, const DeviceRates& rates) {
  const auto model = std::make_shared<const StaticModel>(space, rates);
  return [model, &space](const Config& config, double time_us) -> std::optional<double> {
    const auto estimate = model->estimate(space.space().indices_of(config));
    return estimate && estimate->fits ? std::optional(relative_energy(*estimate, time_us)) : std::nullopt;
  };
}

}  // namespace pascaline
