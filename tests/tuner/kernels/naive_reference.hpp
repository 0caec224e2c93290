#pragma once

#include <string>
#include <vector>

#include "core/space/space.hpp"
#include "runtime/device/device.hpp"

namespace pascaline::testing {

/// The emulated device of this process.
[[nodiscard]] Device& shared_emulator();

/// The naive kernel that results of a kernel of this tree are compared with, compiled for a problem of it.
[[nodiscard]] Binary compile_reference(const Device& device, const BoundSpace& bound);
/// The same, loaded.
[[nodiscard]] Kernel load_reference(Device& device, const BoundSpace& bound);

/// What the naive kernel of a kernel of this tree gives of `inputs` in float64, on the emulated device: its outputs in
/// the order of the arguments. Dimensions that it does not have are left out, what
/// `problem` does not say has its default, a missing input or end of one is zeros, and
/// one that is too long is cut off.
[[nodiscard]] std::vector<std::vector<double>> reference_results(const Problem& problem,
                                                                 const std::vector<std::vector<double>>& inputs);
/// Whether that is as near to these elements of the first output as it must be.
[[nodiscard]] bool reference_accepts(const Problem& problem, const std::vector<std::vector<double>>& inputs,
                                     const std::vector<double>& results);

}  // namespace pascaline::testing
