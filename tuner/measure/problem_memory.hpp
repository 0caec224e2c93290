#pragma once

#include <cstdint>

#include "core/space/space.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {

/// Bytes that verifying a problem takes at its peak, before anything of it is allocated. Scratch buffers of single
/// configurations are apart.
struct ProblemMemory {
  double buffers = 0;     ///< on the device, with guard bands
  double references = 0;  ///< on the device, what the reference writes
  double copies = 0;      ///< on the host: what inout buffers begin with, references in float64
};

[[nodiscard]] ProblemMemory problem_memory(const BoundSpace& space);

/// Throws OutOfMemoryError that names the sizes, in one line, if the device or the host has less than that available.
/// On the emulated device both are the same memory.
void require_problem_memory(Device& device, const BoundSpace& space);

}  // namespace pascaline
