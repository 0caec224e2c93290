#pragma once

#include "runtime/ops/operation.hpp"

namespace pascaline::ops {

/// `y[r] = x[r, targets[r]] − log Σ exp(x[r])`: the log-probability of a row's target under softmax; 0 if the target is
/// not a column index. The perplexity of a text is exp(−mean of y). All tensors are dense. With ROWS = 0 it does
/// nothing; with ROWS > 0, WIDTH = 0 is an error.
struct LogProbability {
  static constexpr const char* kName = "log_probability";

  TensorView x;        ///< [ROWS, WIDTH], float32 or float16
  TensorView targets;  ///< [ROWS], int32
  TensorView y;        ///< [ROWS], float32; overlaps nothing

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("x", self.x, Use::read);
    visit("targets", self.targets, Use::read);
    visit("y", self.y, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

}  // namespace pascaline::ops
