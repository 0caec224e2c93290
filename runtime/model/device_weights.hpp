#pragma once

#include <cstdint>
#include <vector>

#include "runtime/checkpoint/model_config.hpp"
#include "runtime/checkpoint/model_weights.hpp"
#include "runtime/checkpoint/weight_source.hpp"
#include "runtime/device/device_memory.hpp"
#include "runtime/checkpoint/weight_recipe.hpp"

namespace pascaline {

/// A model's weights in a device's memory.
struct DeviceWeights : ModelWeights {
  std::vector<RawBuffer> buffers;  ///< what the views point into
  std::uint64_t bytes = 0;
};

/// Bytes that a model's weights take on a device with matrices kept like that. Throws Error as `load_weights` for a
/// recipe that does not fit the model.
[[nodiscard]] std::uint64_t device_weight_bytes(const ModelConfig& config, const WeightRecipe& matrices);

/// Brings every tensor of the source to the device, as `weight_table` lays them out, matrices of the types that `matrices` gives,
/// the rest as float32; heads of the vision tower are filled up with zeros to `padded_head_dim`, each quarter of a head
/// by itself, as slots turn by quarters. Reading, conversion and copies overlap, in `threads` threads (0: a few).
/// Throws OutOfMemoryError before anything is read if the device has less memory free than that takes, ModelError of
/// the source (also if a tensor was not used), and what the device throws.
[[nodiscard]] DeviceWeights load_weights(const ModelConfig& config, WeightSource& source, DeviceMemory& memory,
                                         const WeightRecipe& matrices, int threads = 0);

}  // namespace pascaline
