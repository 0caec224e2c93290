#pragma once

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline::ops {

// All of these take dense tensors of one shape (1 to 4 dimensions, of any number of elements together), float32,
// float16 or bfloat16; two operands have one type, y any of the three. Arithmetic is float32. y may be an operand if it
// has its type, else it overlaps nothing. Addresses are aligned to 16 bytes. They do not wait; without elements there
// is nothing to do. They throw Error for what does not fit, and whatever `launch` throws.

/// `y = x`: a conversion, or a copy.
void convert(Dispatcher& dispatcher, const TensorView& x, const TensorView& y);
/// `y = a + b`.
void add(Dispatcher& dispatcher, const TensorView& a, const TensorView& b, const TensorView& y);
/// `y = SiLU(gate) · factor`, with SiLU(g) = g / (1 + exp(−g)).
void silu_multiply(Dispatcher& dispatcher, const TensorView& gate, const TensorView& factor, const TensorView& y);
/// `y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))`.
void gelu_tanh(Dispatcher& dispatcher, const TensorView& x, const TensorView& y);
/// `y = x/2 · (1 + erf(x/√2))`.
void gelu_erf(Dispatcher& dispatcher, const TensorView& x, const TensorView& y);

}  // namespace pascaline::ops
