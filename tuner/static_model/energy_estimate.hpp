#pragma once

#include <functional>
#include <optional>

#include "core/device/device_rates.hpp"
#include "core/space/space.hpp"
#include "tuner/static_model/static_model.hpp"

namespace pascaline {

/// What a launch is expected to take of energy, to compare configurations by: in units of what the card takes in a
/// microsecond in which its schedulers, shared memory and global memory are all busy. Of that it takes a quarter in a
/// microsecond in which nothing is, and so much for each of the three (a guess: cards differ, and only the order of
/// configurations matters, of which those that look good are measured). `time_us`: what the launch takes.
[[nodiscard]] double relative_energy(const Estimate& estimate, double time_us) noexcept;

/// `relative_energy` of a configuration that was timed; nothing where its work has no value or no block fits an SM.
using EnergyEstimator = std::function<std::optional<double>(const Config&, double time_us)>;

/// Of configurations of `space`, which must outlive it.
[[nodiscard]] EnergyEstimator energy_estimator(const BoundSpace& space, const DeviceRates& rates);

}  // namespace pascaline
