#pragma once

#include "runtime/ops/advance.hpp"
#include "runtime/ops/gather.hpp"
#include "runtime/ops/sample.hpp"

namespace pascaline::ops {

/// The next token, and the decoding step that it is for: what Sample, Advance and Gather of the token's row do one
/// after the other, in one launch. Dense. What is written overlaps nothing.
struct SampleNext {
  static constexpr const char* kName = "sample_next";

  TensorView logits;       ///< as of Sample, and so on down to `probability`
  TensorView settings;     ///< [4], float32
  TensorView top_k;        ///< [1], int32
  TensorView generator;    ///< [2], int64
  TensorView seen;         ///< [VOCABULARY], int32
  TensorView token;        ///< [1], int32
  TensorView probability;  ///< [1], float32
  TensorView length;       ///< [1], int32: one is added, as to `slots` and `positions`
  TensorView slots;        ///< [1], int32
  TensorView positions;    ///< [3, 1], int32
  TensorView table;        ///< [VOCABULARY, WIDTH], of what Gather takes
  TensorView next;         ///< [1, WIDTH], float32: the token's row of the table

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("logits", self.logits, Use::read);
    visit("settings", self.settings, Use::read);
    visit("top_k", self.top_k, Use::read);
    visit("generator", self.generator, Use::change);
    visit("seen", self.seen, Use::change);
    visit("token", self.token, Use::write);
    visit("probability", self.probability, Use::write);
    visit("length", self.length, Use::change);
    visit("slots", self.slots, Use::change);
    visit("positions", self.positions, Use::change);
    visit("table", self.table, Use::read);
    visit("next", self.next, Use::write);
  }
  /// What it is made of.
  [[nodiscard]] Sample sample() const noexcept {
    return {logits, settings, top_k, generator, seen, token, probability};
  }
  [[nodiscard]] Advance advance() const noexcept { return {length, slots, positions}; }
  [[nodiscard]] Gather gather() const noexcept { return {table, token, next}; }

  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

}  // namespace pascaline::ops
