#pragma once

#include <optional>

#include "core/problem.hpp"
#include "model/residency/residency.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {

/// Measures how fast this machine copies to the device and multiplies with weights of that type on the processor, from
/// memory and not from its caches, in about half a second: means, so that what slows down some tries counts, such as
/// other programs or a limit on processor time. The device's own rates are those of copying within its memory and of
/// its clock. What cannot be measured for want of memory is 0. `memory` is the device's, or over it; all that is taken
/// is given back. Throws what the device throws.
[[nodiscard]] ResidencyRates measure_rates(Device& device, DeviceMemory& memory, ElementType weights);

/// Float32 operations a second that a GPU can do at its highest clock, a product and its sum being two. Nothing for
/// other devices, for architectures that are not known, and where the card does not tell its clock.
[[nodiscard]] std::optional<double> peak_flops(const DeviceInfo& device, const Sensors& sensors);
/// The same of int8 operations by dp4a, one of which is eight.
[[nodiscard]] std::optional<double> peak_int8_ops(const DeviceInfo& device, const Sensors& sensors);

}  // namespace pascaline
