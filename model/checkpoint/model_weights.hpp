#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ops/tensor.hpp"

namespace pascaline {

// Weights of a model on a device, as its operations take them. Matrices are [outputs, inputs] of the type that the
// recipe gives, everything else float32. `weight_table` says which tensors each is made of.

/// A matrix in parts, each of rows of one type and in memory of its own, the rows of one below those of another.
/// Mostly it is one.
struct StackedMatrix {
  static constexpr std::size_t kMost = 3;

  StackedMatrix() = default;
  StackedMatrix(const TensorView& whole) : parts{whole} {}  // NOLINT(google-explicit-*)

  /// Those that are there.
  [[nodiscard]] std::span<const TensorView> all() const& noexcept {
    std::size_t count = 1;
    while (count < kMost && parts[count].rank != 0) {
      ++count;
    }
    return {parts.data(), count};
  }
  std::span<const TensorView> all() const&& = delete;  // they lie in this
  /// The type of that row; of the last part for rows after all.
  [[nodiscard]] ElementType type_of(std::int64_t row) const noexcept {
    std::size_t part = 0;
    for (; part + 1 < all().size() && row >= parts[part].shape[0]; ++part) {
      row -= parts[part].shape[0];
    }
    return parts[part].type;
  }

  std::array<TensorView, kMost> parts;  ///< the first ones are there
};

struct TextLayerWeights {
  TensorView input_norm;  ///< [hidden]
  StackedMatrix qkv;      ///< [(heads + 2 · kv_heads) · head_dim, hidden]
  TensorView q_norm;      ///< [head_dim]; empty where heads are not normalised
  TensorView k_norm;      ///< as q_norm
  TensorView output;      ///< [hidden, heads · head_dim]
  TensorView post_norm;   ///< [hidden]
  TensorView gate_up;     ///< [2 · intermediate, hidden]: rows of gate and up in turn
  TensorView down;        ///< [hidden, intermediate]
};

struct TextWeights {
  TensorView embedding;  ///< [vocabulary, hidden]
  TensorView head;       ///< [vocabulary, hidden]; the embedding itself if they are tied
  TensorView norm;       ///< [hidden]
  std::vector<TextLayerWeights> layers;
};

/// A linear layer with its bias.
struct LinearWeights {
  TensorView weight;
  TensorView bias;
};

/// A normalisation with its bias.
struct NormWeights {
  TensorView weight;
  TensorView bias;
};

struct VisionBlockWeights {
  NormWeights norm1;         ///< [hidden]
  LinearWeights qkv;         ///< [3 · heads · padded head, hidden], see `padded_head_dim`
  LinearWeights projection;  ///< [hidden, heads · padded head]
  NormWeights norm2;         ///< [hidden]
  LinearWeights fc1;         ///< [intermediate, hidden]
  LinearWeights fc2;         ///< [hidden, intermediate]
};

struct MergerWeights {
  NormWeights norm;   ///< [hidden], or of the merged patches together
  LinearWeights fc1;  ///< [merged, merged] with merged = hidden · merge²
  LinearWeights fc2;  ///< [out_hidden, merged]
};

struct PatchWeights {
  LinearWeights patch_embed;  ///< [hidden, channels · frames · patch²]
  TensorView positions;       ///< [side, side, hidden]
};

struct VisionWeights : PatchWeights {
  std::vector<VisionBlockWeights> blocks;
  MergerWeights merger;
  std::vector<MergerWeights> deepstack;
};

/// All weights of a part that is streamed as a whole.
[[nodiscard]] inline std::array<TensorView*, 10> views_of(TextLayerWeights& layer) {
  auto& qkv = layer.qkv.parts;
  return {&layer.input_norm, &qkv[0],       &qkv[1],          &qkv[2],        &layer.q_norm,
          &layer.k_norm,     &layer.output, &layer.post_norm, &layer.gate_up, &layer.down};
}
[[nodiscard]] inline std::array<TensorView*, 3> views_of(PatchWeights& patches) {
  return {&patches.patch_embed.weight, &patches.patch_embed.bias, &patches.positions};
}
[[nodiscard]] inline std::array<TensorView*, 12> views_of(VisionBlockWeights& block) {
  return {&block.norm1.weight,      &block.norm1.bias,      &block.qkv.weight,   &block.qkv.bias,
          &block.projection.weight, &block.projection.bias, &block.norm2.weight, &block.norm2.bias,
          &block.fc1.weight,        &block.fc1.bias,        &block.fc2.weight,   &block.fc2.bias};
}
[[nodiscard]] inline std::array<TensorView*, 6> views_of(MergerWeights& merger) {
  return {&merger.norm.weight, &merger.norm.bias,  &merger.fc1.weight,
          &merger.fc1.bias,    &merger.fc2.weight, &merger.fc2.bias};
}

struct ModelWeights {
  TextWeights text;
  VisionWeights vision;  ///< empty of a model that only reads text
};

}  // namespace pascaline
