#pragma once

#include <cstdint>

#include "runtime/ops/norm_epsilon.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline::ops {

/// Tensors that tokens' heads are normalised and rotated with, and the cache that their keys and values go to.
struct TokenHeads {
  TensorView q_weight;  ///< [HEAD_DIM], float32; left out if heads are not normalised
  TensorView k_weight;  ///< as q_weight
  TensorView cosine;    ///< [POSITIONS, HEAD_DIM/2], float32
  TensorView sine;      ///< as cosine
  /// [3, TOKENS], int32: T, H and W of each token. Not checked: those outside of the tables take the nearest row.
  TensorView positions;
  TensorView k_cache;        ///< [KEYS, KV_HEADS, HEAD_DIM], float32, float16 or int8; overlaps nothing
  TensorView v_cache;        ///< as k_cache
  TensorView k_scales = {};  ///< [KEYS, KV_HEADS], float32, with int8 only; overlaps nothing
  TensorView v_scales = {};  ///< as k_scales
  std::int64_t section_h = 20;
  std::int64_t section_w = 20;
  NormEpsilon epsilon = {};  ///< of all norms

  /// Returns these members alone, for another operation to begin with.
  [[nodiscard]] const TokenHeads& token_heads() const noexcept { return *this; }
};

}  // namespace pascaline::ops
