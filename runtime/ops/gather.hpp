#pragma once

#include "runtime/ops/operation.hpp"

namespace pascaline::ops {

/// Row indices[t] of a table for each token t; zeros for an index that is no row. All dense. Without tokens or columns
/// there is nothing to do; a table without rows is an error.
struct Gather {
  static constexpr const char* kName = "gather";

  TensorView table;    ///< [VOCABULARY, WIDTH], float32, float16, bfloat16 or a format of matrices
  TensorView indices;  ///< [TOKENS], int32
  TensorView y;        ///< [TOKENS, WIDTH], float32 or float16; overlaps nothing

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("table", self.table, Use::read);
    visit("indices", self.indices, Use::read);
    visit("y", self.y, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

/// Of an embedding table: dense, of what Gather takes.
void check_table(const Checks& check, const TensorView& table, const Extent& vocabulary, const Extent& width);

}  // namespace pascaline::ops
