#pragma once

#include <string>

#include "core/binary.hpp"
#include "runtime/device/cuda/driver_api.hpp"

namespace pascaline {

/// Loads a cubin, or has the driver translate PTX under the binary's register cap, into the current context; throws
/// CudaError with the driver's log. `device` is for messages.
[[nodiscard]] CuModule load_cuda_module(const DriverApi& driver, const Binary& binary, const std::string& device);

/// The binary's resources with what the driver says of the loaded function.
[[nodiscard]] Resources loaded_resources(const DriverApi& driver, CuFunction function, const Binary& binary);

}  // namespace pascaline
