#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "model/checkpoint/model_config.hpp"
#include "model/model.hpp"

namespace pascaline {

/// Logits recorded elsewhere, and what they follow. Move-only: `images` point into `pixels`.
struct LogitReference {
  std::vector<std::int32_t> tokens;
  std::vector<float> pixels;
  std::vector<PatchView> images;
  std::vector<float> logits;                ///< [tokens, vocabulary]
  std::vector<std::int32_t> decode_tokens;  ///< one a step after `tokens`; may be empty
  std::vector<float> decode_logits;         ///< [decode_tokens, vocabulary]

  LogitReference() = default;
  LogitReference(LogitReference&&) = default;
  LogitReference& operator=(LogitReference&&) = default;
  LogitReference(const LogitReference&) = delete;
  LogitReference& operator=(const LogitReference&) = delete;
  ~LogitReference() = default;
};

/// Reads a safetensors file with `input_ids` I32[S] and `logits` F32[S, vocabulary]; maybe `pixel_values` F32[patches,
/// values] and `image_grid_thw` I32[images, 3]; maybe `decode_ids` I32[T] and `decode_logits` F32[T, vocabulary].
/// Throws ModelError, which names the tensor and the place in it, for what is missing, of another type or shape, or not
/// of the model: tokens beyond its vocabulary, grids that it cannot merge or that pixel_values does not hold.
[[nodiscard]] LogitReference read_reference(const std::filesystem::path& name, const ModelConfig& config);

/// What a model is asked for by it, for `ModelOptions::request`.
[[nodiscard]] ModelRequest request_of(const LogitReference& reference);

}  // namespace pascaline
