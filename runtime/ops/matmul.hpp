#pragma once

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline::ops {

/// `C[M,N] = A[M,K] · B[N,K]ᵀ` on the dispatcher's device: the product of activations A with a linear layer's weight
/// B. All three of one element type (float32 or float16), aligned to 16 bytes; C overlaps neither A nor B. Does not
/// wait. With M or N zero there is nothing to do.
/// Throws Error for what does not fit (shapes, types, alignment, K zero, an extent above 2^31-1), and whatever
/// `Dispatcher::prepare` and `launch` throw. A shape's first call prepares it, which may compile.
void matmul(Dispatcher& dispatcher, const TensorView& a, const TensorView& b, const TensorView& c);

}  // namespace pascaline::ops
