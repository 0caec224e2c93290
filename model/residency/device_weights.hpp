#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "model/checkpoint/model_config.hpp"
#include "model/checkpoint/model_weights.hpp"
#include "model/checkpoint/weight_recipe.hpp"
#include "model/checkpoint/weight_source.hpp"
#include "model/checkpoint/weight_table.hpp"
#include "model/residency/residency.hpp"
#include "runtime/device/device_memory.hpp"

namespace pascaline {

/// The weights of a part of the model one behind the other in the host's memory, as they are copied to a device.
struct WeightBlock {
  PinnedBuffer pinned;  ///< page-locked, unless the system refuses that
  RawBuffer plain;      ///< else
  std::size_t used_bytes = 0;

  [[nodiscard]] DeviceSpan span() const noexcept {
    return pinned ? DeviceSpan{pinned.bytes().data(), pinned.bytes().size()} : plain.span();
  }
};

/// A model's weights in memory. Views of streamed parts point into their blocks.
struct DeviceWeights : ModelWeights {
  std::vector<RawBuffer> buffers;            ///< what the views point into
  std::map<WeightPart, WeightBlock> blocks;  ///< of streamed layers and parts of the vision tower
  std::uint64_t bytes = 0;                   ///< of the device
  std::uint64_t host_bytes = 0;
  std::uint64_t not_pinned_bytes = 0;  ///< that were to be page-locked and are not
};

/// Where a model's weights go.
struct WeightMemories {
  DeviceMemory* device = nullptr;
  DeviceMemory* host = nullptr;               ///< the processor's; needed if anything is not on the device
  const ModelResidency* residency = nullptr;  ///< null: all is on the device
};

/// What the parts of a model take with matrices kept like that, of what can be streamed as blocks; throws as
/// `load_weights`. Only of parts, nothing else is filled in.
[[nodiscard]] ResidencySizes weight_sizes(const ModelConfig& config, const WeightRecipe& matrices);
/// The type of most of a layer's weights.
[[nodiscard]] ElementType layer_type(const ModelConfig& config, const WeightRecipe& matrices);

/// Bytes that a model's weights take on a device with matrices kept like that. Throws Error as `load_weights` for a
/// recipe that does not fit the model.
[[nodiscard]] std::uint64_t device_weight_bytes(const ModelConfig& config, const WeightRecipe& matrices);

/// Brings every tensor of the source to the device, as `weight_table` lays them out, matrices of the types that
/// `matrices` gives, the rest as float32; heads of the vision tower are filled up with zeros to `padded_head_dim`, each
/// quarter of a head by itself, as slots turn by quarters. Reading, conversion and copies overlap, in `threads` threads
/// (0: a few). Throws OutOfMemoryError before anything is read if the device has less memory free than that takes,
/// ModelError of the source (also if a tensor was not used), and what the device throws.
[[nodiscard]] DeviceWeights load_weights(const ModelConfig& config, WeightSource& source, DeviceMemory& memory,
                                         const WeightRecipe& matrices, int threads = 0);
/// The same with each part where it is placed, in the same form everywhere.
[[nodiscard]] DeviceWeights load_weights(const ModelConfig& config, WeightSource& source,
                                         const WeightMemories& memories, const WeightRecipe& matrices, int threads = 0);

}  // namespace pascaline
