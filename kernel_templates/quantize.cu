// Q[ROWS,COLUMNS], SCALES = int8(X[ROWS,WIDTH]): activations rounded to int8 for products with quantized weights.
// With BY_ROW a row has one scale, scales[ROWS]; else each block of 32 columns has one, scales[COLUMNS / 32, ROWS]. A
// scale is the largest magnitude over 127 and q the integer that is nearest to value / scale; all zero where the scale
// is too small for normal numbers, NaN or infinite where a value is. Columns behind WIDTH are zero.
//
// FLOPs: 3 an element. Bytes: X, Q and the scales.
// Requires: buffers aligned to 16 bytes; ROWS, WIDTH >= 1; COLUMNS a multiple of 32 and not below WIDTH.
// Launch: grid (ceil(ROWS / ROWS_PER_BLOCK), parts of a row; one with BY_ROW), block THREADS_PER_ROW · ROWS_PER_BLOCK.
//
// A thread takes four neighbouring elements, so that a quarter of a warp has a block of 32.

#include "common/quantize.cuh"
#include "common/row.cuh"
#include "common/types.cuh"
#include "common/vector.cuh"

namespace {

constexpr int kThreads = kThreadsPerRow * kRowsPerBlock;
constexpr int kStep = 4 * kThreadsPerRow;  // columns that a row's threads take at a time

static_assert(kThreadsPerRow % 32 == 0 && (kThreadsPerRow & (kThreadsPerRow - 1)) == 0, "whole warps share a row");
static_assert(kParts >= 1 && (!kRowScales || kParts == 1), "a scale of a whole row is found by one block");

__device__ __forceinline__ int largest_bits(const float (&value)[4]) {
  int largest = 0;
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    const int bits = magnitude_bits(value[v]);
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    quantize(const STORAGE* __restrict__ x, signed char* __restrict__ q, float* __restrict__ scales, int rows,
             int width, int columns) {
  __shared__ int partial[kThreads / 32];
  const int row = static_cast<int>(blockIdx.x) * kRowsPerBlock + static_cast<int>(threadIdx.x) / kThreadsPerRow;
  const int thread = static_cast<int>(threadIdx.x) % kThreadsPerRow;
  const bool inside = row < rows;
  x += inside ? static_cast<long long>(row) * width : 0;
  q += inside ? static_cast<long long>(row) * columns : 0;
  const int end = inside ? width : 0;
  Int8Scale scale{};
  if constexpr (kRowScales) {
    int largest = 0;
    for (int column = 4 * thread; column < end; column += kStep) {
      float value[4];
      load_floats<kRowsAligned>(value, x, column, end);
      const int bits = largest_bits(value);
      largest = bits > largest ? bits : largest;
    }
    largest = largest_of_lanes<32>(largest);
    if (threadIdx.x % 32 == 0) {
      partial[threadIdx.x / 32] = largest;
    }
    __syncthreads();
    constexpr int kWarpsPerRow = kThreadsPerRow / 32;
    const int first_warp = static_cast<int>(threadIdx.x) / kThreadsPerRow * kWarpsPerRow;
#pragma unroll
    for (int warp = 0; warp < kWarpsPerRow; ++warp) {
      largest = partial[first_warp + warp] > largest ? partial[first_warp + warp] : largest;
    }
    scale = int8_scale(largest);
    if (inside && thread == 0) {
      scales[row] = scale.scale;
    }
  }
  // All lanes of a warp make the same number of turns, as they exchange the largest magnitudes.
  for (int first = static_cast<int>(blockIdx.y) * kStep; first < columns; first += kParts * kStep) {
    const int column = first + 4 * thread;
    float value[4];
    load_floats<kRowsAligned>(value, x, column, end);
    if constexpr (!kRowScales) {
      scale = int8_scale(largest_of_lanes<8>(largest_bits(value)));
      if (inside && thread % 8 == 0 && column < columns) {
        scales[static_cast<long long>(column / 32) * rows + row] = scale.scale;
      }
    }
    if (inside && column < columns) {
      *reinterpret_cast<int*>(q + column) = to_int8_word(value, scale.inverse);
    }
  }
}

#else

// The same with a thread a row; rounding is part of the definition, so it is done in float32, too.
// Launch: grid ROWS, block 1.
extern "C" __global__ void quantize_reference(const STORAGE* __restrict__ x, double* __restrict__ q,
                                              double* __restrict__ scales, int rows, int width, int columns) {
  const int row = static_cast<int>(blockIdx.x);
  const int block = kRowScales ? columns : 32;
  for (int first = 0; first < columns; first += block) {
    int largest = 0;
    for (int i = first; i < first + block && i < width; ++i) {
      const int bits = magnitude_bits(to_float(x[static_cast<long long>(row) * width + i]));
      largest = bits > largest ? bits : largest;
    }
    const Int8Scale scale = int8_scale(largest);
    scales[static_cast<long long>(first / block) * rows + row] = scale.scale;
    for (int i = first; i < first + block; ++i) {
      const float value = i < width ? to_float(x[static_cast<long long>(row) * width + i]) : 0.0f;
      q[static_cast<long long>(row) * columns + i] = to_int8(value, scale.inverse);
    }
  }
}

#endif
