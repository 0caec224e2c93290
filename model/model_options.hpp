#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "model/checkpoint/weight_recipe.hpp"
#include "model/fusion/attention_choice.hpp"
#include "model/fusion/fusion_mode.hpp"
#include "model/residency/residency_options.hpp"

namespace pascaline {

/// What is known of the first prompt before the model is loaded, so that memory for it can be counted.
struct ModelRequest {
  std::int64_t tokens = 1;  ///< of prompt and answer
  std::int64_t images = 0;
  std::int64_t patches = 0;       ///< of all its images
  std::int64_t longest_side = 0;  ///< in patches, of its images
  bool all_logits = false;        ///< those of the prompt's tokens are asked for, too
  bool is_all = false;            ///< nothing longer will follow
};

/// How a model is kept and run.
struct ModelOptions {
  WeightRecipe weights = ElementType::float16;  ///< of matrices
  ElementType cache = ElementType::float16;     ///< of keys and values: float32, float16 or int8
  std::int64_t context = 0;   ///< longest sequence in tokens; 0: kUsualContext, or what the model takes
  std::int64_t chunk = 1024;  ///< most tokens of a pass over the layers
  bool graphs = true;         ///< record a decoding step and launch it as one
  Fusion fusion = Fusion::automatic;
  FusionFile fusion_file{};      ///< with automatic: a plan that goes before all else
  AttentionChoice attention{};   ///< of the decoder's tokens to those before them
  ModelRequest request{};        ///< that there must be memory for from the beginning
  ResidencyOptions residency{};  ///< of the model between a device and the processor

  static constexpr std::int64_t kUsualContext = 4096;
};

}  // namespace pascaline
