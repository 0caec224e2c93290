#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/checkpoint/model_config.hpp"
#include "model/model_options.hpp"
#include "model/residency/residency.hpp"
#include "runtime/device/device_memory.hpp"

namespace pascaline {

/// Rows whose logits are computed at a time where all are asked for.
inline constexpr std::int64_t kLogitRows = 32;

/// A part of what a model takes of its device's memory, or of the host's.
struct MemoryPart {
  std::string name;
  std::uint64_t bytes = 0;
};

/// Bytes of all of them.
[[nodiscard]] std::uint64_t total_of(const std::vector<MemoryPart>& parts);

/// All that a model takes of its device to answer the options' request, before any of it is taken; all of the model is
/// there.
[[nodiscard]] std::vector<MemoryPart> memory_parts(DeviceMemory& memory, const ModelConfig& config,
                                                   const ModelOptions& options);

/// What a model is placed by, for the options' request; `memory` is the device's, or over it.
[[nodiscard]] ResidencySizes residency_sizes(DeviceMemory& memory, const ModelConfig& config,
                                             const ModelOptions& options);
/// What a model with that residency takes of the device, and of the host, by what it is for. `filled_device` as in
/// `device_bytes`.
[[nodiscard]] std::vector<MemoryPart> device_parts(const ModelConfig& config, const ModelOptions& options,
                                                   const ResidencySizes& sizes, const ModelResidency& residency,
                                                   bool filled_device);
[[nodiscard]] std::vector<MemoryPart> host_parts(const ModelConfig& config, const ModelOptions& options,
                                                 const ResidencySizes& sizes, const ModelResidency& residency,
                                                 bool filled_device);

}  // namespace pascaline
