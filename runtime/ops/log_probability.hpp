#pragma once

#include "runtime/ops/operation.hpp"

namespace pascaline::ops {

/// `y[r] = x[r, targets[r]] − log Σ exp(x[r])`: the logarithm of the probability that the softmax of a row of logits
/// gives to its target; 0 for a target that is not a column. Their mean over a text is what its perplexity is computed
/// from. All dense. Without rows there is nothing to do; rows without columns are an error.
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
