#pragma once

#include "runtime/ops/operation.hpp"

namespace pascaline::ops {

/// Heads have a multiple of so many elements, up to so many.
inline constexpr std::int64_t kHeadDimStep = 8;
inline constexpr std::int64_t kMaxHeadDim = 256;

/// `out = softmax(q · kᵀ / √HEAD_DIM + mask) · v` for each head; query head h reads key head h / (HEADS / KV_HEADS).
/// HEAD_DIM is a multiple of 8 from 8 to 256, HEADS a multiple of KV_HEADS. q, k and v may have rows farther apart than
/// they are long (parts of a projection), those of k and v equally far. Keys and values in int8 count times their
/// scales (docs/formats.md). Queries that see no key give zeros. Without queries there is nothing to do; without keys
/// nothing is defined, which is an error.
struct AttentionPrefill {
  static constexpr const char* kName = "attention_prefill";

  TensorView q;    ///< [QUERIES, HEADS, HEAD_DIM], float32 or float16
  TensorView k;    ///< [KEYS, KV_HEADS, HEAD_DIM], float32, float16 or int8
  TensorView v;    ///< as k
  TensorView out;  ///< [QUERIES, HEADS, HEAD_DIM] of q's type, dense; overlaps nothing
  /// [SEGMENTS + 1], int32, ascending from 0 to QUERIES: query i sees the rows of its own segment. Left out: it sees
  /// all. Not with `causal`; needs KEYS = QUERIES. The contents lie on the device and are not checked.
  TensorView segment_starts = {};
  bool causal = true;        ///< query i sees keys 0 to KEYS - QUERIES + i: the new tokens are the last of the cache
  TensorView k_scales = {};  ///< [KEYS, KV_HEADS], float32, dense; with int8 only
  TensorView v_scales = {};  ///< as k_scales

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("q", self.q, Use::read);
    visit("k", self.k, Use::read);
    visit("v", self.v, Use::read);
    visit("k_scales", self.k_scales, Use::read);
    visit("v_scales", self.v_scales, Use::read);
    visit("segment_starts", self.segment_starts, Use::read);
    visit("out", self.out, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  /// By OpenBLAS; throws Error if that is not installed.
  void compute() const;

  /// Segments of the queries: 1 if none are given.
  [[nodiscard]] std::int64_t segments() const noexcept {
    return is_given(segment_starts) ? segment_starts.shape[0] - 1 : 1;
  }
};

/// The same for one query a head, the newest token's, against the first `length` rows of a cache. Kernels take at most
/// 31 for HEADS / KV_HEADS with a HEAD_DIM of 64, 18 with 128, 10 with 256: a block's shared memory holds the sums of
/// such a group. KEYS is what the cache has room for: at least 1.
struct AttentionDecode {
  static constexpr const char* kName = "attention_decode";

  TensorView q;              ///< [HEADS, HEAD_DIM], float32 or float16
  TensorView k;              ///< [KEYS, KV_HEADS, HEAD_DIM], float32, float16 or int8; rows may lie apart
  TensorView v;              ///< as k
  TensorView length;         ///< [1], int32, on the device; held to 0 … KEYS, and 0 gives zeros
  TensorView out;            ///< [HEADS, HEAD_DIM] of q's type or int8; overlaps nothing
  TensorView k_scales = {};  ///< [KEYS, KV_HEADS], float32, dense; with int8 only
  TensorView v_scales = {};  ///< as k_scales
  /// With out in int8, and HEAD_DIM a multiple of 32: float32 [HEADS · HEAD_DIM / 32, 1], as of one row.
  TensorView scales = {};

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("q", self.q, Use::read);
    visit("k", self.k, Use::read);
    visit("v", self.v, Use::read);
    visit("k_scales", self.k_scales, Use::read);
    visit("v_scales", self.v_scales, Use::read);
    visit("length", self.length, Use::read);
    visit("out", self.out, Use::write);
    visit("scales", self.scales, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  /// Of any number of query heads a key head. Reads the cache once.
  void compute() const;
};

}  // namespace pascaline::ops
