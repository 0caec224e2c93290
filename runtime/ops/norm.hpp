#pragma once

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline::ops {

/// `y = s / √(mean(s²) + 1e-6) · weight` for each row, with s = x, or s = x + residual where there is one, which then
/// receives s. All dense, aligned to 16 bytes.
struct RmsnormArguments {
  TensorView x;         ///< [ROWS, WIDTH], float32 or float16
  TensorView weight;    ///< [WIDTH], float32
  TensorView y;         ///< [ROWS, WIDTH], float32 or float16; with a residual no wider than x; overlaps nothing
  TensorView residual;  ///< [ROWS, WIDTH] of x's type, or left out; overlaps nothing
};

/// Launches it; does not wait. Without rows or columns there is nothing to do. Throws Error for what does not fit
/// (shapes, types, alignment, overlap), and whatever `launch` throws.
void rmsnorm(Dispatcher& dispatcher, const RmsnormArguments& arguments);

/// `y = (s − mean) / √(variance + 1e-6) · weight + bias` for each row, with the biased variance and s as in rmsnorm.
struct LayernormArguments {
  TensorView x;         ///< [ROWS, WIDTH], float32 or float16
  TensorView weight;    ///< [WIDTH], float32
  TensorView bias;      ///< [WIDTH], float32
  TensorView y;         ///< as for rmsnorm
  TensorView residual;  ///< as for rmsnorm
};

/// Launches it; does not wait. Nothing to do and errors as for `rmsnorm`.
void layernorm(Dispatcher& dispatcher, const LayernormArguments& arguments);

/// `y = exp(x − max) / Σ exp(x − max)` for each row of x[ROWS, WIDTH], float32 or float16; y[ROWS, WIDTH] of x's type
/// overlaps nothing. Does not wait. Nothing to do and errors as for `rmsnorm`.
void softmax(Dispatcher& dispatcher, const TensorView& x, const TensorView& y);

}  // namespace pascaline::ops
