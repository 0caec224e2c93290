#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/model_config.hpp"
#include "model/checkpoint/piece_work.hpp"
#include "model/checkpoint/weight_recipe.hpp"

namespace pascaline {

/// How `write_quantized` works.
struct QuantizeSettings {
  int threads = 0;  ///< 0: one for each processor
  /// Called from one thread, a few times a second; false ends it.
  std::function<bool(const TensorProgress&)> goes_on;
};

/// Writes a checkpoint to a new safetensors file, matrices as the recipe says, in their file form with notes of their
/// formats (docs/formats.md), everything else as it is stored. A matrix of the vision tower whose rows will have zeros
/// put between their values, because the size of its heads is not a multiple of 8, stays as it is, with a note; it is
/// quantized when it is loaded. Memory is bounded whatever the model's size. False if `goes_on` ended it: the file is
/// then of no use, as it is after an exception. Throws Error as WeightRecipe does for recipes that do not fit the
/// model, ModelError naming tensor and row of a value that its format cannot hold, and for a checkpoint that has
/// formats already; and as SafetensorsStream.
[[nodiscard]] bool write_quantized(const Checkpoint& checkpoint, const ModelConfig& config, const WeightRecipe& recipe,
                                   const std::filesystem::path& file, const QuantizeSettings& settings = {});

}  // namespace pascaline
