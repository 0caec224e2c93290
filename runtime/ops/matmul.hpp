#pragma once

#include <cstdint>

#include "runtime/ops/operation.hpp"

namespace pascaline::ops {

/// What is done with a product's float32 sums before they are stored; the kernels' dimension EPILOGUE.
enum class Epilogue : std::uint8_t {
  none = 0,
  bias = 1,
  bias_gelu_tanh = 2,  ///< GELU of sum + bias, by tanh
  bias_gelu_erf = 3,   ///< GELU of sum + bias, by erf
  residual = 4,        ///< sum + residual
  swiglu = 5,          ///< column i is SiLU(column 2i) · column 2i+1: gate and factor in alternate rows of B
  bias_residual = 6,   ///< sum + bias + residual
};

/// Whether the epilogue adds a bias, or a residual.
[[nodiscard]] constexpr bool has_bias(Epilogue epilogue) noexcept {
  return epilogue == Epilogue::bias || epilogue == Epilogue::bias_gelu_tanh || epilogue == Epilogue::bias_gelu_erf ||
         epilogue == Epilogue::bias_residual;
}
[[nodiscard]] constexpr bool has_residual(Epilogue epilogue) noexcept {
  return epilogue == Epilogue::residual || epilogue == Epilogue::bias_residual;
}

/// `c = epilogue(a · bᵀ)`. All dense, aligned to 16 bytes. Up to 8 rows go to the kernel `matvec`, more to `matmul`.
/// With M or N zero there is nothing to do; K zero is an error, as are an odd N for swiglu and an operand too many.
struct Matmul {
  static constexpr const char* kName = "matmul";

  TensorView a;              ///< [M, K], float32 or float16: activations
  WeightView b;              ///< [N, K]: a linear layer's weight; float32, float16 or bfloat16, or as its format says
  TensorView c;              ///< [M, N] of a's type, [M, N/2] for swiglu; may be the residual, else overlaps nothing
  TensorView bias = {};      ///< [N], float32; where the epilogue adds it, else left out
  TensorView residual = {};  ///< [M, N] of a's type; where the epilogue adds it, else left out
  Epilogue epilogue = Epilogue::none;

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("A", self.a, Use::read);
    visit_weight("B", self.b, visit);
    visit("bias", self.bias, Use::read);
    visit("residual", self.residual, Use::read_in_place);
    visit("C", self.c, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  /// Up to 8 rows stream the weight through loops of their own; more go to OpenBLAS, panel by panel. Throws Error if
  /// that is not installed.
  void compute() const;
};

/// `y = patches · weightᵀ + bias`: the vision model's convolution whose kernel and stride are a patch; otherwise as
/// `Matmul`.
struct PatchEmbed {
  static constexpr const char* kName = "patch_embed";

  TensorView patches;  ///< [N, P]: a row is a patch, flattened in the weight's order: channel, frame, row, column
  WeightView weight;   ///< [WIDTH, P]
  TensorView bias;     ///< [WIDTH], float32
  TensorView y;        ///< [N, WIDTH] of the patches' type; overlaps nothing

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("patches", self.patches, Use::read);
    visit_weight("weight", self.weight, visit);
    visit("bias", self.bias, Use::read);
    visit("residual", kNoTensor, Use::read);
    visit("y", self.y, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

}  // namespace pascaline::ops
