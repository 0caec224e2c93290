// y[i] = f(a[i], b[i]) for COUNT elements, by FORMULA: 0: a (a conversion or a copy); 1: a + b; 2: SiLU(a) · b with
// SiLU(a) = a / (1 + exp(-a)); 3: GELU(a) = a/2 · (1 + tanh(√(2/π) · (a + 0.044715·a³))); 4: GELU(a) =
// a/2 · (1 + erf(a/√2)); 5: GELU(a) · b with the GELU of 3. a and b of INPUT, y of OUTPUT; float32 arithmetic. b is not
// read, and may be null, for 0, 3, 4.
//
// Bytes: a, b where it is read, and y once. Requires: pointers aligned to 16 bytes; y may be a or b if its type is
// theirs, and otherwise overlaps neither.
// Launch: grid ceil(COUNT / (BLOCK_THREADS · VECTOR · UNROLL)), block BLOCK_THREADS.

#include "common/activation.cuh"
#include "common/row.cuh"

namespace {

constexpr bool kTwoInputs = kFormula == 1 || kFormula == 2 || kFormula == 5;

static_assert(kBlockThreads % 32 == 0 && kBlockThreads <= 1024, "a block is whole warps");
static_assert(kVector >= 1 && kUnroll >= 1, "counts");
static_assert(kFormula >= 0 && kFormula <= 5, "a known formula");

__device__ __forceinline__ float apply(float a, float b) {
  if constexpr (kFormula == 1) {
    return a + b;
  } else if constexpr (kFormula == 2) {
    return silu(a) * b;
  } else if constexpr (kFormula == 3) {
    return gelu_tanh(a);
  } else if constexpr (kFormula == 4) {
    return gelu_erf(a);
  } else if constexpr (kFormula == 5) {
    return gelu_tanh(a) * b;
  } else {
    return a;
  }
}

// Only the last vector of all may be cut short.
__device__ __forceinline__ void load_part(float (&value)[kVector], const INPUT* input, int end) {
  if (end == kVector) {
    load_floats<true>(value, input, 0, end);
  } else {
    load_floats<false>(value, input, 0, end);
  }
}

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kBlockThreads, kMinBlocks)
    elementwise(const INPUT* a, const INPUT* b, OUTPUT* y, long long count) {
  const long long first = (static_cast<long long>(blockIdx.x) * (kBlockThreads * kUnroll) + threadIdx.x) * kVector;
  float value[kUnroll][kVector];
  float other[kUnroll][kVector] = {};
  int end[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const long long at = first + u * (kBlockThreads * kVector);
    end[u] = count - at >= kVector ? kVector : count > at ? static_cast<int>(count - at) : 0;
    load_part(value[u], a + at, end[u]);
    if constexpr (kTwoInputs) {
      load_part(other[u], b + at, end[u]);
    }
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    OUTPUT* out = y + first + u * (kBlockThreads * kVector);
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      value[u][v] = apply(value[u][v], other[u][v]);
    }
    if (end[u] == kVector) {
      store_floats<true>(out, 0, kVector, value[u]);
    } else {
      store_floats<false>(out, 0, end[u], value[u]);
    }
  }
}

#else

// The same in float64, one thread an element.
// Launch: grid ceil(COUNT / 256), block 256.
extern "C" __global__ void elementwise_reference(const INPUT* __restrict__ a, const INPUT* __restrict__ b,
                                                 double* __restrict__ y, long long count) {
  const long long i = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= count) {
    return;
  }
  const double x = to_float(a[i]);
  if constexpr (kFormula == 1) {
    y[i] = x + to_float(b[i]);
  } else if constexpr (kFormula == 2) {
    y[i] = x / (1.0 + exp(-x)) * to_float(b[i]);
  } else if constexpr (kFormula == 3) {
    y[i] = 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  } else if constexpr (kFormula == 4) {
    y[i] = 0.5 * x * (1.0 + erf(x * 0.7071067811865476));
  } else if constexpr (kFormula == 5) {
    y[i] = 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))) * to_float(b[i]);
  } else {
    y[i] = x;
  }
}

#endif
