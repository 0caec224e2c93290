#pragma once

#include <vector>

#include "runtime/ops/tensor.hpp"

namespace pascaline {

// Weights of a model on a device, as its operations take them. Matrices are [outputs, inputs] of the type that the
// recipe gives, everything else float32. `weight_table` says which tensors each is made of.

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

struct VisionWeights {
  LinearWeights patch_embed;  ///< [hidden, channels · frames · patch²]
  TensorView positions;       ///< [side, side, hidden]
  std::vector<VisionBlockWeights> blocks;
  MergerWeights merger;
  std::vector<MergerWeights> deepstack;
};

struct ModelWeights {
  TextWeights text;
  VisionWeights vision;  ///< empty of a model that only reads text
};

}  // namespace pascaline
