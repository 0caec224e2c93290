#pragma once

#include "runtime/device/cuda/driver_api.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {

/// The driver's description of memory that a texture object reads. Throws Error for a type that no texture has.
[[nodiscard]] CuTextureMemory texture_memory(DeviceSpan memory, const TextureLayout& layout);

/// The driver's description of how it is read.
[[nodiscard]] CuTextureReading texture_reading(const TextureLayout& layout);

}  // namespace pascaline
