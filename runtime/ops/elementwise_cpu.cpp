#include <algorithm>

#include "core/util/worker_pool.hpp"
#include "runtime/cpu/activation.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/ops/elementwise.hpp"

namespace pascaline::ops {
namespace {

// What a thread takes at a time, and what it widens at a time.
constexpr std::int64_t kElementSlice = 32'768;
constexpr std::int64_t kPieceElements = 2'048;

// Calls `compute(first, count)` for pieces of all elements.
template <typename Compute>
void for_pieces(const TensorView& y, const Compute& compute) {
  worker_pool().run(y.shape[0] * row_length(y), kElementSlice, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += kPieceElements) {
      compute(first, std::min(kPieceElements, end - first));
    }
  });
}

// y = f(x): `function(from, to, count)`.
template <typename Function>
void apply(const TensorView& x, const TensorView& y, const Function& function) {
  for_pieces(y, [&](std::int64_t first, std::int64_t count) {
    float* out = cpu::scratch(cpu::Scratch::second, count);
    function(cpu::floats_at(x, first, count, cpu::scratch(cpu::Scratch::first, count)), out, count);
    cpu::store_floats(out, y, first, count);
  });
}

// y = f(a, b): `function(a, b, to, count)`.
template <typename Function>
void apply(const TensorView& a, const TensorView& b, const TensorView& y, const Function& function) {
  for_pieces(y, [&](std::int64_t first, std::int64_t count) {
    const float* left = cpu::floats_at(a, first, count, cpu::scratch(cpu::Scratch::first, count));
    const float* right = cpu::floats_at(b, first, count, cpu::scratch(cpu::Scratch::second, count));
    float* out = cpu::scratch(cpu::Scratch::third, count);
    function(left, right, out, count);
    cpu::store_floats(out, y, first, count);
  });
}

void add_values(const float* a, const float* b, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] = a[i] + b[i];
  }
}

void gelu_times(const float* gate, const float* factor, float* y, std::int64_t count) {
  cpu::vector_kernels().gelu_tanh(gate, y, count);
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] *= factor[i];
  }
}

}  // namespace

void Convert::compute() const {
  for_pieces(y, [&](std::int64_t first, std::int64_t count) {
    cpu::store_floats(cpu::floats_at(x, first, count, cpu::scratch(cpu::Scratch::first, count)), y, first, count);
  });
}

void Add::compute() const { apply(a, b, y, add_values); }
void SiluMultiply::compute() const { apply(gate, factor, y, cpu::vector_kernels().silu_multiply); }
void GeluMultiply::compute() const { apply(gate, factor, y, gelu_times); }
void GeluTanh::compute() const { apply(x, y, cpu::vector_kernels().gelu_tanh); }
void GeluErf::compute() const { apply(x, y, cpu::gelu_erf_values); }

}  // namespace pascaline::ops
