#pragma once

#include "runtime/ops/operation.hpp"

namespace pascaline::ops {

/// Adds one to where the next token of a decoding step goes, on the device.
struct Advance {
  static constexpr const char* kName = "advance";

  TensorView length;     ///< [1], int32
  TensorView slots;      ///< [1], int32
  TensorView positions;  ///< [3, 1], int32

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("length", self.length, Use::change);
    visit("slots", self.slots, Use::change);
    visit("positions", self.positions, Use::change);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

}  // namespace pascaline::ops
