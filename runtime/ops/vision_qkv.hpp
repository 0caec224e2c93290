#pragma once

#include "runtime/ops/matmul.hpp"
#include "runtime/ops/normalising_matmul.hpp"
#include "runtime/ops/rope.hpp"

namespace pascaline::ops {

/// An image's queries, keys and values, turned: a product with a bias and RopeVision of what it gives, in one kernel,
/// `matmul`; with `norm`, Layernorm of the rows before it, as NormalisingMatmul. What the product gives is turned
/// before it is rounded to a's type.
struct VisionQkv {
  static constexpr const char* kName = "vision_qkv";

  TensorView a;                ///< [PATCHES, K], float32 or float16
  TensorView b;                ///< [3·HEADS·HEAD_DIM, K], as NormalisingMatmul
  TensorView bias;             ///< [3·HEADS·HEAD_DIM], float32
  TensorView qkv;              ///< [PATCHES, 3, HEADS, HEAD_DIM] of a's type; overlaps nothing
  TensorView cosine;           ///< as RopeVision
  TensorView sine;             ///< as RopeVision
  TensorView positions;        ///< as RopeVision
  TensorView norm = {};        ///< [K], float32: Layernorm's weight; left out where rows are normalised already
  TensorView norm_bias = {};   ///< with norm: [K], float32
  TensorView statistics = {};  ///< with norm: [2, PATCHES], float32: RowStatistics of a

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("A", self.a, Use::read);
    visit("B", self.b, Use::read);
    visit("bias", self.bias, Use::read);
    visit("residual", kNoTensor, Use::read);
    visit("qkv", self.qkv, Use::write);
    visit("norm", self.norm, Use::read);
    visit("norm bias", self.norm_bias, Use::read);
    visit("statistics", self.statistics, Use::read);
    visit("cosine", self.cosine, Use::read);
    visit("sine", self.sine, Use::read);
    visit("positions", self.positions, Use::read);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

}  // namespace pascaline::ops
