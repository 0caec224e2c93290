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

/// Throws OutOfMemoryError unless `memory`, which is the device's or a pool over it with a limit, has as much free. Its
/// message has several lines: what is needed and free, the parts, what each option that helps would bring it to, and
/// with which of them, at which context, it would fit.
void require_memory(DeviceMemory& memory, Device& device, const ModelConfig& config, const ModelOptions& options);

}  // namespace pascaline
