#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/checkpoint/model_config.hpp"
#include "runtime/device/device.hpp"
#include "runtime/model/model_options.hpp"

namespace pascaline {

/// A part of what a model takes of its device's memory.
struct MemoryPart {
  std::string name;
  std::uint64_t bytes = 0;
};

/// All that a model takes to answer the options' request, before any of it is taken.
[[nodiscard]] std::vector<MemoryPart> memory_parts(DeviceMemory& memory, const ModelConfig& config,
                                                   const ModelOptions& options);

/// Throws OutOfMemoryError unless the device has as much free. Its message has several lines: what is needed and free,
/// the parts, and what each option that helps would bring it to.
void require_memory(Device& device, const ModelConfig& config, const ModelOptions& options);

}  // namespace pascaline
