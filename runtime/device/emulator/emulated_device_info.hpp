#pragma once

#include <string>

#include "runtime/device/device.hpp"

namespace pascaline {

/// The processor's model and instruction sets: code made for one may not run on another.
[[nodiscard]] std::string processor_identity();

/// Temperature and clock of the processor, where the system tells them.
[[nodiscard]] Sensors read_host_sensors() noexcept;

}  // namespace pascaline
