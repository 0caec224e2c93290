#pragma once

#include "runtime/ops/operation.hpp"
#include "runtime/ops/token_heads.hpp"

namespace pascaline::ops {

/// One token from the projection of its queries, keys and values to the residual stream behind the projection after
/// attention, in one launch (kernel `attention_projected`): what
/// AttentionDecodeQkv and Matmul with residual do one after the other, but that what attention gives stays in float32
/// until the product takes it. HEAD_DIM and numbers of heads as AttentionDecode takes them.
struct AttentionProjected : TokenHeads {
  static constexpr const char* kName = "attention_projected";

  TensorView length;  ///< as of AttentionDecodeQkv
  TensorView qkv;     ///< [HEADS + 2·KV_HEADS, HEAD_DIM], float32 or float16
  TensorView x;       ///< [1, HIDDEN] of qkv's type: the residual stream
  TensorView weight;  ///< [HIDDEN, HEADS·HEAD_DIM], of any type that Matmul takes
  TensorView c;       ///< as x; may be x, else overlaps nothing

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
    visit("x", self.x, Use::read_in_place);
    visit("weight", self.weight, Use::read);
    visit("C", self.c, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  /// As AttentionDecodeQkv::compute.
  void compute() const;
};

}  // namespace pascaline::ops
