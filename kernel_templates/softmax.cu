// y[r] = exp(x[r] - max) / sum(exp(x[r] - max)) for each row r. x[ROWS,WIDTH] and y[ROWS,WIDTH] row-major, float32 or
// float16 storage, float32 arithmetic.
//
// FLOPs: about 5·ROWS·WIDTH. Bytes: 2·ROWS·WIDTH·sizeof(STORAGE).
// Requires: pointers aligned to 16 bytes; ROWS, WIDTH >= 1, of any value.
// Launch: grid ceil(ROWS / ROWS_PER_BLOCK), block ROWS_PER_BLOCK · THREADS_PER_ROW.
//
// Made for short rows: a row's threads hold it in registers, HELD vectors each, so that it is read once; what
// is wider is read again for each of the three passes.

#include "common/row.cuh"

namespace {

constexpr int kThreads = kThreadsPerRow * kRowsPerBlock;
constexpr int kStep = kThreadsPerRow * kVector;  // columns a row's threads take at a time

static_assert((kThreadsPerRow & (kThreadsPerRow - 1)) == 0, "groups of threads are powers of two");
static_assert(kThreads % 32 == 0 && kThreads <= 1024, "a block is whole warps");
static_assert(kVector >= 1 && kHeld >= 1 && (HELD_VECTORS == 0 || HELD_VECTORS == kHeld), "counts");

__device__ __forceinline__ float lowest() { return Max::identity(); }

__device__ __forceinline__ float largest(const float (&value)[kVector]) {
  float most = value[0];
#pragma unroll
  for (int v = 1; v < kVector; ++v) {
    most = fmaxf(most, value[v]);
  }
  return most;
}

// Replaces the values by their exponentials, and returns the sum of those.
__device__ __forceinline__ float exponentiate(float (&value)[kVector], float most) {
  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    value[v] = __expf(value[v] - most);
    sum += value[v];
  }
  return sum;
}

__device__ __forceinline__ void store_scaled(STORAGE* y, int column, int end, float (&value)[kVector], float factor) {
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    value[v] *= factor;
  }
  store_floats<kRowsAligned>(y, column, end, value);
}

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, kMinBlocks)
    softmax(const STORAGE* __restrict__ x, STORAGE* __restrict__ y, int rows, int width) {
  __shared__ float partial[2][kThreads / 32];
  const int row = static_cast<int>(blockIdx.x) * kRowsPerBlock + static_cast<int>(threadIdx.x) / kThreadsPerRow;
  const int first = static_cast<int>(threadIdx.x) % kThreadsPerRow * kVector;
  const int end = row < rows ? width : 0;  // rows behind the last take part in the barriers, but have no columns
  const long long offset = row < rows ? static_cast<long long>(row) * width : 0;
  x += offset;
  y += offset;

  float held[kHeld][kVector];
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    load_floats<kRowsAligned>(held[i], x, first + i * kStep, end, lowest());
  }
  float most = lowest();
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    most = fmaxf(most, largest(held[i]));
  }
  if constexpr (!kRowsHeld) {
    for (int column = first + kHeld * kStep; column < end; column += kStep) {
      float value[kVector];
      load_floats<kRowsAligned>(value, x, column, end, lowest());
      most = fmaxf(most, largest(value));
    }
  }
  most = group_reduce<Max, kReducePtx, kThreadsPerRow>(most, partial[0]);

  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    sum += exponentiate(held[i], most);
  }
  if constexpr (!kRowsHeld) {
    for (int column = first + kHeld * kStep; column < end; column += kStep) {
      float value[kVector];
      load_floats<kRowsAligned>(value, x, column, end, lowest());
      sum += exponentiate(value, most);
    }
  }
  const float factor = 1.0f / group_reduce<Sum, kReducePtx, kThreadsPerRow>(sum, partial[1]);

#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    store_scaled(y, first + i * kStep, end, held[i], factor);
  }
  if constexpr (!kRowsHeld) {
    for (int column = first + kHeld * kStep; column < end; column += kStep) {
      float value[kVector];
      load_floats<kRowsAligned>(value, x, column, end, lowest());
      exponentiate(value, most);
      store_scaled(y, column, end, value, factor);
    }
  }
}

#else

// The same in float64, one warp a row.
// Launch: grid ROWS, block 32.
extern "C" __global__ void softmax_reference(const STORAGE* __restrict__ x, double* __restrict__ y, int rows,
                                             int width) {
  const long long offset = static_cast<long long>(blockIdx.x) * width;
  float most = lowest();
  for (int column = 0; column < width; ++column) {
    most = fmaxf(most, to_float(x[offset + column]));
  }
  double sum = 0.0;
  for (int column = static_cast<int>(threadIdx.x); column < width; column += 32) {
    const double value = exp(static_cast<double>(to_float(x[offset + column])) - most);
    y[offset + column] = value;
    sum += value;
  }
  sum = warp_sum(sum);
  for (int column = static_cast<int>(threadIdx.x); column < width; column += 32) {
    y[offset + column] /= sum;
  }
}

#endif
