#pragma once

#include "runtime/ops/operation.hpp"
#include "runtime/ops/token_heads.hpp"

namespace pascaline::ops {

/// One token from the projection of its queries, keys and values to the result of attention: what QkNormRope and
/// AttentionDecode do one after the other, in one launch. The token's own key and value count as they are, before they
/// are rounded for the cache. HEAD_DIM and numbers of heads as AttentionDecode takes them.
struct AttentionDecodeQkv : TokenHeads {
  static constexpr const char* kName = "attention_decode_qkv";

  /// [1], int32, on the device: rows of the cache that count, this token's, which is the last of them, among them. Held
  /// to 0 … KEYS; 0 gives zeros and leaves the cache as it is.
  TensorView length;
  TensorView qkv;  ///< [HEADS + 2·KV_HEADS, HEAD_DIM], float32 or float16
  TensorView out;  ///< [HEADS, HEAD_DIM] of qkv's type or int8; overlaps nothing
  /// With out in int8, and HEAD_DIM a multiple of 32: float32 [HEADS · HEAD_DIM / 32, 1], as of one row.
  TensorView scales = {};

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("qkv", self.qkv, Use::read);
    visit("q_weight", self.q_weight, Use::read);
    visit("k_weight", self.k_weight, Use::read);
    visit("cosine", self.cosine, Use::read);
    visit("sine", self.sine, Use::read);
    visit("positions", self.positions, Use::read);
    visit("length", self.length, Use::read);
    visit("k_cache", self.k_cache, Use::change);
    visit("v_cache", self.v_cache, Use::change);
    visit("k_scales", self.k_scales, Use::change);
    visit("v_scales", self.v_scales, Use::change);
    visit("out", self.out, Use::write);
    visit("scales", self.scales, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  /// Widens the cache to float32 first: where the processor is the place to compute, QkNormRope and AttentionDecode are
  /// faster.
  void compute() const;
};

}  // namespace pascaline::ops
