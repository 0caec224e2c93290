#pragma once

#include <cstdint>

#include "runtime/ops/norm_epsilon.hpp"
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
  swiglu_int8 = 7,     ///< as swiglu, rounded to int8 with a scale for each 32 columns; of QuantizedMatmul only
};

/// Whether the epilogue adds a bias, or a residual.
[[nodiscard]] constexpr bool has_bias(Epilogue epilogue) noexcept {
  return epilogue == Epilogue::bias || epilogue == Epilogue::bias_gelu_tanh || epilogue == Epilogue::bias_gelu_erf ||
         epilogue == Epilogue::bias_residual;
}
[[nodiscard]] constexpr bool has_residual(Epilogue epilogue) noexcept {
  return epilogue == Epilogue::residual || epilogue == Epilogue::bias_residual;
}

/// Rows that a product may have to stream its weight; more are worth sharing what was read of it.
inline constexpr std::int64_t kFewRows = 8;

/// `c = epilogue(a · bᵀ)`. All dense, aligned to 16 bytes. Up to kFewRows rows go to the kernel `matvec`, more to
/// `matmul`. With a weight in a packed format the rows of a are rounded to int8 first (docs/formats.md), by `matvec_q`
/// itself for up to kFewRows; more need a QuantizedMatmul on a device.
/// With M or N zero there is nothing to do; K zero is an error, as are an odd N for swiglu and an operand too many.
struct Matmul {
  static constexpr const char* kName = "matmul";

  TensorView a;          ///< [M, K], float32 or float16: activations
  TensorView b;          ///< [N, K]: a linear layer's weight; float32, float16, bfloat16, float16x or a packed format
  TensorView c;          ///< [M, N] of a's type, [M, N/2] for swiglu; may be the residual, else overlaps nothing
  TensorView bias = {};  ///< [N], float32; where the epilogue adds it, else left out
  TensorView residual = {};  ///< [M, N] of a's type; where the epilogue adds it, else left out
  Epilogue epilogue = Epilogue::none;

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    const bool quantized = is_packed_format(self.b.type);  // whose kernels take and give rounded rows, too
    visit("A", self.a, Use::read);
    if (quantized) {
      visit("scales", kNoTensor, Use::read);
      visit("norm", kNoTensor, Use::read);
    }
    visit("B", self.b, Use::read);
    visit("bias", self.bias, Use::read);
    visit("residual", self.residual, Use::read_in_place);
    visit("C", self.c, Use::write);
    if (quantized) {
      visit("rounded", kNoTensor, Use::write);
      visit("rounded scales", kNoTensor, Use::write);
    }
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  /// What observers are told: the same, or the product with rounded rows where only the processor takes it in one step.
  [[nodiscard]] KernelProblem observed() const;
  /// Up to kFewRows rows stream the weight through loops of their own; more go to OpenBLAS, panel by panel: throws
  /// Error if that is not installed. A weight in a packed format is multiplied as integers, whatever the rows.
  void compute() const;
};

/// Activations rounded to int8, for products with weights in a packed format.
struct QuantizedRows {
  TensorView values;  ///< [M, columns], int8; zeros behind the columns that the activations have
  TensorView scales;  ///< float32: [columns / 32, M], or [1, M] for int8_row
};

/// Columns that the rows of a product are filled up to, with a weight of that type and so many columns.
[[nodiscard]] std::int64_t filled_columns(ElementType weight, std::int64_t columns);
/// Rows of QuantizedRows::scales for products with such a weight.
[[nodiscard]] std::int64_t scale_rows(ElementType weight, std::int64_t columns);

/// `y = int8(x)`, as a product with a weight in the packed format `for_weight` takes it. Dense; without rows there is
/// nothing to do.
struct Quantize {
  static constexpr const char* kName = "quantize";

  TensorView x;     ///< [M, K], float32 or float16
  QuantizedRows y;  ///< columns: filled_columns(for_weight, K)
  ElementType for_weight = ElementType::q8_0;

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("x", self.x, Use::read);
    visit("y", self.y.values, Use::write);
    visit("scales", self.y.scales, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

/// `c = epilogue(a · bᵀ)` as Matmul, with activations that were rounded already and a weight in a packed format. Up to
/// kFewRows rows go to the kernel `matvec_q`, more to `matmul_q`.
struct QuantizedMatmul {
  static constexpr const char* kName = "matmul_q";

  QuantizedRows a;             ///< [M, columns]: filled_columns(b.type, K)
  TensorView b;                ///< [N, K], a packed format
  TensorView c = {};           ///< [M, N], float32 or float16, [M, N/2] for swiglu; may be the residual
  QuantizedRows rounded = {};  ///< instead of c for swiglu_int8: [M, N/2] with N/64 scales each; N a multiple of 64
  TensorView bias = {};        ///< as Matmul
  TensorView residual = {};    ///< as Matmul, of c's type
  Epilogue epilogue = Epilogue::none;

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("A", self.a.values, Use::read);
    visit("scales", self.a.scales, Use::read);
    if (self.a.values.shape[0] <= kFewRows) {
      visit("norm", kNoTensor, Use::read);  // of matvec_q alone
    }
    visit("B", self.b, Use::read);
    visit("bias", self.bias, Use::read);
    visit("residual", self.residual, Use::read_in_place);
    visit("C", self.c, Use::write);
    visit("rounded", self.rounded.values, Use::write);
    visit("rounded scales", self.rounded.scales, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  /// As Matmul.
  void compute() const;
};

/// Rmsnorm of up to kFewRows rows and a product with what that gives, in one kernel: `matvec_normed`, or `matvec_q` for
/// a weight in a packed format whose scales are by block, which divides K. What that rounds to int8 is a · norm, before
/// rows are divided by the roots of their mean squares: few values are rounded otherwise than after Rmsnorm.
struct NormedMatmul {
  static constexpr const char* kName = "normed_matmul";

  TensorView a;                ///< [M, K], float32 or float16
  TensorView norm;             ///< [K], float32: Rmsnorm's weight
  TensorView b;                ///< [N, K]: any type that Matmul takes, but int8_row
  TensorView c = {};           ///< as QuantizedMatmul, or as Matmul for b of floats; overlaps nothing but a residual
  QuantizedRows rounded = {};  ///< as QuantizedMatmul, with b in a packed format
  TensorView bias = {};        ///< as Matmul
  TensorView residual = {};    ///< as Matmul, of c's type
  Epilogue epilogue = Epilogue::none;
  NormEpsilon epsilon = {};  ///< of the norm

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    const bool quantized = is_packed_format(self.b.type);
    visit("A", self.a, Use::read);
    if (quantized) {
      visit("scales", kNoTensor, Use::read);
    }
    visit("norm", self.norm, Use::read);
    visit("B", self.b, Use::read);
    visit("bias", self.bias, Use::read);
    visit("residual", self.residual, Use::read_in_place);
    visit("C", self.c, Use::write);
    if (quantized) {
      visit("rounded", self.rounded.values, Use::write);
      visit("rounded scales", self.rounded.scales, Use::write);
    }
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  /// As Matmul.
  void compute() const;
};

/// `y = patches · weightᵀ + bias`: the vision model's convolution whose kernel and stride are a patch; otherwise as
/// `Matmul`.
struct PatchEmbed {
  static constexpr const char* kName = "patch_embed";

  TensorView patches;  ///< [N, P]: a row is a patch, flattened in the weight's order: channel, frame, row, column
  TensorView weight;   ///< [WIDTH, P]
  TensorView bias;     ///< [WIDTH], float32
  TensorView y;        ///< [N, WIDTH] of the patches' type; overlaps nothing

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("patches", self.patches, Use::read);
    visit("weight", self.weight, Use::read);
    visit("bias", self.bias, Use::read);
    visit("residual", kNoTensor, Use::read);
    visit("y", self.y, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

}  // namespace pascaline::ops
