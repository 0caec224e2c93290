#pragma once

#include "runtime/ops/operation.hpp"

namespace pascaline::ops {

// All of these take dense tensors of one shape (1 to 4 dimensions, of any number of elements together), float32,
// float16 or bfloat16; two operands have one type, y any of the three. Arithmetic is float32. y may be an operand if it
// has its type, else it overlaps nothing. Addresses are aligned to 16 bytes. Without elements there is nothing to do.

/// `y = x`: a conversion, or a copy.
struct Convert {
  static constexpr const char* kName = "convert";

  TensorView x;
  TensorView y;

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("x", self.x, Use::read_in_place);
    visit("b", kNoTensor, Use::read);
    visit("y", self.y, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

/// `y = a + b`.
struct Add {
  static constexpr const char* kName = "add";

  TensorView a;
  TensorView b;
  TensorView y;

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("a", self.a, Use::read_in_place);
    visit("b", self.b, Use::read_in_place);
    visit("y", self.y, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

/// `y = SiLU(gate) · factor`, with SiLU(g) = g / (1 + exp(−g)).
struct SiluMultiply {
  static constexpr const char* kName = "silu_multiply";

  TensorView gate;
  TensorView factor;
  TensorView y;

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("gate", self.gate, Use::read_in_place);
    visit("factor", self.factor, Use::read_in_place);
    visit("y", self.y, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

/// `y = GELU(gate) · factor`, with GELU by tanh as in `GeluTanh`.
struct GeluMultiply {
  static constexpr const char* kName = "gelu_multiply";

  TensorView gate;
  TensorView factor;
  TensorView y;

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("gate", self.gate, Use::read_in_place);
    visit("factor", self.factor, Use::read_in_place);
    visit("y", self.y, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

/// `y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))`.
struct GeluTanh {
  static constexpr const char* kName = "gelu_tanh";

  TensorView x;
  TensorView y;

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("x", self.x, Use::read_in_place);
    visit("b", kNoTensor, Use::read);
    visit("y", self.y, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

/// `y = x/2 · (1 + erf(x/√2))`.
struct GeluErf {
  static constexpr const char* kName = "gelu_erf";

  TensorView x;
  TensorView y;

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("x", self.x, Use::read_in_place);
    visit("b", kNoTensor, Use::read);
    visit("y", self.y, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

}  // namespace pascaline::ops
