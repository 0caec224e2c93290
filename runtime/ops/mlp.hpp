#pragma once

#include <cstdint>

#include "runtime/ops/norm_epsilon.hpp"
#include "runtime/ops/operation.hpp"

namespace pascaline::ops {

/// The feed-forward block of a decoder's layer for up to kFewRows rows, in one launch: `c = x + (SiLU(g) · u) · downᵀ`,
/// where g and u are the even and the odd columns of `rmsnorm(x) · gate_upᵀ`. What Rmsnorm, Matmul with swiglu and
/// Matmul with residual do one after the other, but that nothing between them is rounded to x's type. With weights in
/// packed formats the rows that both products take are rounded to int8 (docs/formats.md): those of the first as by
/// NormedMatmul, before they are divided by the roots of their mean squares.
struct Mlp {
  static constexpr const char* kName = "mlp";

  TensorView x;        ///< [M, HIDDEN], float32 or float16
  TensorView norm;     ///< [HIDDEN], float32: Rmsnorm's weight
  TensorView gate_up;  ///< [2·INTERMEDIATE, HIDDEN]: gate and factor in alternate rows; any type that Matmul takes
  TensorView down;     ///< [HIDDEN, INTERMEDIATE]; of gate_up's type, or both in packed formats
  TensorView c;        ///< [M, HIDDEN] of x's type; may be x, else overlaps nothing
  NormEpsilon epsilon = {};

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("x", self.x, Use::read_in_place);
    visit("norm", self.norm, Use::read);
    visit("gate_up", self.gate_up, Use::read);
    visit("down", self.down, Use::read);
    visit("C", self.c, Use::write);
  }
  /// Whether there are such weights: a kernel takes both types, which what replaces it need not ask of its own.
  [[nodiscard]] static bool takes(ElementType gate_up, ElementType down) noexcept;
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

}  // namespace pascaline::ops
