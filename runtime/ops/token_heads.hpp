#pragma once

#include <cstdint>

#include "runtime/ops/norm_epsilon.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline::ops {

/// Tensors that a token's heads are normalised and rotated with, and the cache that its key and value go to.
struct TokenHeads {
  TensorView q_weight;   ///< [HEAD_DIM], float32; left out if heads are not normalised
  TensorView k_weight;   ///< as q_weight
  TensorView cosine;     ///< [POSITIONS, HEAD_DIM/2], float32
  TensorView sine;       ///< as cosine
  TensorView positions;  ///< [3, 1], int32: T, H and W. Not checked: outside of the tables the nearest row is taken
  /// [1], int32, on the device: rows of the cache that count, this token's, which is the last of them, among them. Held
  /// to 0 … KEYS; 0 gives zeros and leaves the cache as it is.
  TensorView length;
  TensorView k_cache;           ///< [KEYS, KV_HEADS, HEAD_DIM], float32, float16 or int8; overlaps nothing
  TensorView v_cache;           ///< as k_cache
  TensorView k_scales = {};     ///< [KEYS, KV_HEADS], float32, with int8 only; overlaps nothing
  TensorView v_scales = {};     ///< as k_scales
  std::int64_t section_h = 20;  ///< as of QkNormRope
  std::int64_t section_w = 20;
  NormEpsilon epsilon = {};  ///< of all norms
};

}  // namespace pascaline::ops
