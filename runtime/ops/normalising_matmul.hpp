#pragma once

#include "runtime/ops/matmul.hpp"
#include "runtime/ops/norm.hpp"

namespace pascaline::ops {

/// Rmsnorm or Layernorm of rows whose RowStatistics are known, and a product with what that gives, in one kernel,
/// `matmul`, which normalises rows as it brings them to where it multiplies them. What the norm gives is not rounded to
/// a's type in between; else this is Matmul after the norm, for any number of rows. With norm [K/4] the norm is of each
/// quarter of a row, as of a row of [4·M, K/4], and Layernorm; K is then a multiple of 32.
struct NormalisingMatmul {
  static constexpr const char* kName = "normalising_matmul";

  TensorView a;               ///< [M, K], float32 or float16
  TensorView norm;            ///< [K] or [K/4], float32: the norm's weight
  TensorView norm_bias = {};  ///< like norm, float32: Layernorm's bias; left out for Rmsnorm
  TensorView statistics;      ///< [1, M] of Rmsnorm, [2, M] or [2, 4·M] of Layernorm, float32: RowStatistics of a
  TensorView b;               ///< [N, K], float32, float16, bfloat16 or float16x
  TensorView c;               ///< as Matmul; overlaps nothing but a residual
  TensorView bias = {};       ///< as Matmul
  TensorView residual = {};   ///< as Matmul
  Epilogue epilogue = Epilogue::none;

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("A", self.a, Use::read);
    visit("B", self.b, Use::read);
    visit("bias", self.bias, Use::read);
    visit("residual", self.residual, Use::read_in_place);
    visit("C", self.c, Use::write);
    visit("norm", self.norm, Use::read);
    visit("norm bias", self.norm_bias, Use::read);
    visit("statistics", self.statistics, Use::read);
    visit_no_rotation(visit);
  }
  /// Whether each quarter of a row is normalised by itself.
  [[nodiscard]] bool is_of_quarters() const noexcept;
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  /// As Matmul.
  void compute() const;
};

}  // namespace pascaline::ops
