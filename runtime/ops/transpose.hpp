#pragma once

#include "runtime/ops/operation.hpp"

namespace pascaline::ops {

/// `y[COLUMNS, ROWS] = x[ROWS, COLUMNS]ᵀ`, both dense and aligned to 16 bytes. Without elements there is nothing to do.
struct Transpose {
  static constexpr const char* kName = "transpose";

  TensorView x;  ///< [ROWS, COLUMNS], float32 or float16
  TensorView y;  ///< [COLUMNS, ROWS] of x's type; overlaps nothing

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("x", self.x, Use::read);
    visit("y", self.y, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

}  // namespace pascaline::ops
