#pragma once

#include <vector>

#include "runtime/ops/tensor.hpp"

namespace pascaline {

// Weights of a model on a device, as its operations take them. Matrices are [outputs, inputs] in the storage type
// chosen, everything else float32.

struct TextLayerWeights {
  TensorView input_norm;  ///< [hidden]
  TensorView qkv;         ///< [(heads + 2 · kv_heads) · head_dim, hidden]
  TensorView q_norm;      ///< [head_dim]
  TensorView k_norm;      ///< [head_dim]
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

/// A linear layer or a normalisation, with its bias.
struct AffineWeights {
  TensorView weight;
  TensorView bias;
};

struct VisionBlockWeights {
  AffineWeights norm1;       ///< [hidden]
  AffineWeights qkv;         ///< [3 · heads · padded head, hidden], see `padded_head_dim`
  AffineWeights projection;  ///< [hidden, heads · padded head]
  AffineWeights norm2;       ///< [hidden]
  AffineWeights fc1;         ///< [intermediate, hidden]
  AffineWeights fc2;         ///< [hidden, intermediate]
};

struct MergerWeights {
  AffineWeights norm;  ///< [hidden], or of the merged patches together
  AffineWeights fc1;   ///< [merged, merged] with merged = hidden · merge²
  AffineWeights fc2;   ///< [out_hidden, merged]
};

struct VisionWeights {
  AffineWeights patch_embed;  ///< [hidden, channels · frames · patch²]
  TensorView positions;       ///< [side, side, hidden]
  std::vector<VisionBlockWeights> blocks;
  MergerWeights merger;
  std::vector<MergerWeights> deepstack;
};

}  // namespace pascaline
