#pragma once

#include <cstdint>

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/ops/tensor.hpp"
#include "runtime/ops/weight_view.hpp"

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

/// `c = epilogue(a · bᵀ)`. All dense, aligned to 16 bytes.
struct MatmulArguments {
  TensorView a;         ///< [M, K], float32 or float16: activations
  WeightView b;         ///< [N, K], float32, float16 or bfloat16: a linear layer's weight
  TensorView c;         ///< [M, N] of a's type, [M, N/2] for swiglu; may be the residual, else overlaps nothing
  TensorView bias;      ///< [N], float32; where the epilogue adds it, else left out
  TensorView residual;  ///< [M, N] of a's type; where the epilogue adds it, else left out
  Epilogue epilogue = Epilogue::none;
};

/// Computes it on the dispatcher's device; does not wait. Up to 8 rows go to the kernel `matvec`, more to `matmul`.
/// With M or N zero there is nothing to do. Throws Error for what does not fit (shapes, types, alignment, overlap, K
/// zero, N odd for swiglu, an operand too many), and whatever `launch` throws. A shape's first call prepares it, which
/// may compile.
void matmul(Dispatcher& dispatcher, const MatmulArguments& arguments);

/// `c = a · bᵀ`, as above.
void matmul(Dispatcher& dispatcher, const TensorView& a, const TensorView& b, const TensorView& c);

/// `y = patches · weightᵀ + bias`: the vision model's convolution whose kernel and stride are a patch. patches[N, P]
/// (a row is a patch, flattened in the weight's order: channel, frame, row, column), weight[WIDTH, P], bias[WIDTH] in
/// float32, y[N, WIDTH]; types and errors as for `matmul`.
void patch_embed(Dispatcher& dispatcher, const TensorView& patches, const TensorView& weight, const TensorView& bias,
                 const TensorView& y);

}  // namespace pascaline::ops
