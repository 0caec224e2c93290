#pragma once

#include "runtime/ops/operation.hpp"
#include "runtime/ops/token_heads.hpp"

namespace pascaline::ops {

/// One token's whole attention in one launch, from the residual stream to the residual stream: `c = x + attended ·
/// weightᵀ`, where `attended` is attention of `rmsnorm(x) · qkv_weightᵀ`. What Rmsnorm, Matmul, AttentionDecodeQkv and
/// Matmul with residual do one after the other, but that nothing between them is rounded to x's type. With weights in
/// packed formats (kernel `attention_layer_q`; there is none for others yet) the rows that both products take are
/// rounded to int8 (docs/formats.md): those of the first as by NormedMatmul, before they are divided by the root of
/// their mean square. HEAD_DIM and numbers of heads as AttentionDecode takes them.
struct AttentionLayer : TokenHeads {
  static constexpr const char* kName = "attention_layer";

  TensorView length;      ///< as of AttentionDecodeQkv
  TensorView x;           ///< [1, HIDDEN], float32 or float16: the residual stream
  TensorView norm;        ///< [HIDDEN], float32: Rmsnorm's weight
  TensorView qkv_weight;  ///< [(HEADS + 2·KV_HEADS)·HEAD_DIM, HIDDEN], in a packed format
  TensorView weight;      ///< [HIDDEN, HEADS·HEAD_DIM], in a packed format
  TensorView c;           ///< as x; may be x, else overlaps nothing

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("x", self.x, Use::read_in_place);
    visit("norm", self.norm, Use::read);
    visit("qkv_weight", self.qkv_weight, Use::read);
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
    visit("output_weight", self.weight, Use::read);
    visit("C", self.c, Use::write);
  }
  /// Whether there is a kernel for such weights.
  [[nodiscard]] static bool takes(ElementType qkv, ElementType output) noexcept;
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  /// As AttentionDecodeQkv::compute.
  void compute() const;
};

}  // namespace pascaline::ops
