#include <algorithm>

#include "runtime/cpu/activation.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/cpu/ops.hpp"
#include "runtime/cpu/worker_pool.hpp"
#include "runtime/ops/checked.hpp"

namespace pascaline::cpu {
namespace {

// What a thread takes at a time, and what it widens at a time.
constexpr std::int64_t kElementSlice = 32'768;
constexpr std::int64_t kPieceElements = 2'048;

// Calls `compute(first, count)` for pieces of all elements.
template <typename Compute>
void for_pieces(const TensorView& y, const Compute& compute) {
  worker_pool().run(y.shape[0] * ops::row_length(y), kElementSlice, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += kPieceElements) {
      compute(first, std::min(kPieceElements, end - first));
    }
  });
}

// y = f(x): `function(from, to, count)`.
template <typename Function>
void apply(const TensorView& x, const TensorView& y, const Function& function) {
  for_pieces(y, [&](std::int64_t first, std::int64_t count) {
    float* out = scratch(Scratch::second, count);
    function(floats_at(x, first, count, scratch(Scratch::first, count)), out, count);
    store_floats(out, y, first, count);
  });
}

// y = f(a, b): `function(a, b, to, count)`.
template <typename Function>
void apply(const TensorView& a, const TensorView& b, const TensorView& y, const Function& function) {
  for_pieces(y, [&](std::int64_t first, std::int64_t count) {
    const float* left = floats_at(a, first, count, scratch(Scratch::first, count));
    const float* right = floats_at(b, first, count, scratch(Scratch::second, count));
    float* out = scratch(Scratch::third, count);
    function(left, right, out, count);
    store_floats(out, y, first, count);
  });
}

void add_values(const float* a, const float* b, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] = a[i] + b[i];
  }
}

}  // namespace

void convert(const TensorView& x, const TensorView& y) {
  if (ops::checked_convert(x, y)) {
    for_pieces(y, [&](std::int64_t first, std::int64_t count) {
      store_floats(floats_at(x, first, count, scratch(Scratch::first, count)), y, first, count);
    });
  }
}

void add(const TensorView& a, const TensorView& b, const TensorView& y) {
  if (ops::checked_add(a, b, y)) {
    apply(a, b, y, add_values);
  }
}

void silu_multiply(const TensorView& gate, const TensorView& factor, const TensorView& y) {
  if (ops::checked_silu_multiply(gate, factor, y)) {
    apply(gate, factor, y, vector_kernels().silu_multiply);
  }
}

void gelu_tanh(const TensorView& x, const TensorView& y) {
  if (ops::checked_gelu_tanh(x, y)) {
    apply(x, y, vector_kernels().gelu_tanh);
  }
}

void gelu_erf(const TensorView& x, const TensorView& y) {
  if (ops::checked_gelu_erf(x, y)) {
    apply(x, y, gelu_erf_values);
  }
}

}  // namespace pascaline::cpu
