#pragma once

#include "runtime/ops/advance.hpp"
#include "runtime/ops/gather.hpp"
#include "runtime/ops/sample.hpp"

namespace pascaline::ops {

/// The next token, and the decoding step that it is for: what Sample, Advance and Gather of the token's row do one
/// after the other, in one launch. Dense. What is written overlaps nothing.
struct SampleNext {
  static constexpr const char* kName = "sample_next";

  Sample sample;
  Advance advance;
  TensorView table;  ///< [VOCABULARY, WIDTH], of what Gather takes
  TensorView next;   ///< [1, WIDTH], float32: the token's row of the table

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    Sample::operands(self.sample, visit);
    Advance::operands(self.advance, visit);
    visit("table", self.table, Use::read);
    visit("next", self.next, Use::write);
  }
  /// The rest of what it does.
  [[nodiscard]] Gather gather() const noexcept { return {table, sample.token, next}; }

  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

}  // namespace pascaline::ops
