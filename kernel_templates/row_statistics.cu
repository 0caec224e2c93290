// What RMSNorm or LayerNorm multiply a row by, and what LayerNorm subtracts first, for a product that normalises rows
// as it reads them (matmul.cu). x[ROWS,WIDTH] row-major. statistics[ROWS] receives 1 / sqrt(mean(x²) + epsilon) of each
// row; with LAYER statistics[2, ROWS] receives 1 / sqrt(variance + epsilon), then the means. The variance is the biased
// one. float32 or float16 storage, float32 statistics.
//
// FLOPs: 2·ROWS·WIDTH, with LAYER 4·ROWS·WIDTH. Bytes: x once.
// Requires: pointers aligned to 16 bytes; ROWS, WIDTH >= 1, of any value.
// Launch: grid ceil(ROWS / ROWS_PER_BLOCK), block ROWS_PER_BLOCK · THREADS_PER_ROW.
//
// A row's threads take its columns in turns, VECTOR at a time. Each has its first HELD vectors in registers, so that
// all their loads are under way at once, and with LAYER for both passes: the variance is summed from differences to the
// mean, since mean(x²) - mean² cancels where the mean is large.

#include "common/row.cuh"

namespace {

constexpr int kThreads = kThreadsPerRow * kRowsPerBlock;
constexpr int kStep = kThreadsPerRow * kVector;  // columns a row's threads take at a time
constexpr float kEpsilon = static_cast<float>(EPSILON_NANO / 1e9);

static_assert((kThreadsPerRow & (kThreadsPerRow - 1)) == 0, "groups of threads are powers of two");
static_assert(kThreads % 32 == 0 && kThreads <= 1024, "a block is whole warps");
static_assert(kVector >= 1 && kHeld >= 1 && (HELD_VECTORS == 0 || HELD_VECTORS == kHeld), "counts");

__device__ __forceinline__ float sum_of(const float (&value)[kVector]) {
  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    sum += value[v];
  }
  return sum;
}

// Of the elements that lie in the row.
__device__ __forceinline__ float squared_distances(const float (&value)[kVector], float mean, int column, int end) {
  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    const float distance = value[v] - mean;
    sum += !kLayer || column + v < end ? distance * distance : 0.0f;
  }
  return sum;
}

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, kMinBlocks)
    row_statistics(const STORAGE* __restrict__ x, float* __restrict__ statistics, int rows, int width) {
  __shared__ float partial[2][kThreads / 32];
  const int row = static_cast<int>(blockIdx.x) * kRowsPerBlock + static_cast<int>(threadIdx.x) / kThreadsPerRow;
  const int lane = static_cast<int>(threadIdx.x) % kThreadsPerRow;
  const int first = lane * kVector;
  const int end = row < rows ? width : 0;  // rows behind the last take part in the barriers, but have no columns
  x += row < rows ? static_cast<long long>(row) * width : 0;

  float held[kHeld][kVector];
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    load_floats<kRowsAligned>(held[i], x, first + i * kStep, end);
  }

  float mean = 0.0f;
  if constexpr (kLayer) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      sum += sum_of(held[i]);
    }
    if constexpr (!kRowsHeld) {
      for (int column = first + kHeld * kStep; column < end; column += kStep) {
        float value[kVector];
        load_floats<kRowsAligned>(value, x, column, end);
        sum += sum_of(value);
      }
    }
    mean = group_reduce<Sum, kReducePtx, kThreadsPerRow>(sum, partial[0]) / static_cast<float>(width);
  }

  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    squares += squared_distances(held[i], mean, first + i * kStep, end);
  }
  if constexpr (!kRowsHeld) {
    for (int column = first + kHeld * kStep; column < end; column += kStep) {
      float value[kVector];
      load_floats<kRowsAligned>(value, x, column, end);
      squares += squared_distances(value, mean, column, end);
    }
  }
  squares = group_reduce<Sum, kReducePtx, kThreadsPerRow>(squares, partial[1]);
  if (lane == 0 && row < rows) {
    statistics[row] = rsqrtf(squares / static_cast<float>(width) + kEpsilon);
    if constexpr (kLayer) {
      statistics[rows + row] = mean;
    }
  }
}

#else

// The same in float64, one warp a row.
// Launch: grid ROWS, block 32.
extern "C" __global__ void row_statistics_reference(const STORAGE* __restrict__ x, double* __restrict__ statistics,
                                                    int rows, int width) {
  const int row = static_cast<int>(blockIdx.x);
  x += static_cast<long long>(row) * width;
  double mean = 0.0;
  if constexpr (kLayer) {
    for (int column = static_cast<int>(threadIdx.x); column < width; column += 32) {
      mean += to_float(x[column]);
    }
    mean = warp_sum(mean) / width;
  }
  double squares = 0.0;
  for (int column = static_cast<int>(threadIdx.x); column < width; column += 32) {
    const double distance = to_float(x[column]) - mean;
    squares += distance * distance;
  }
  squares = warp_sum(squares);
  if (threadIdx.x == 0) {
    statistics[row] = 1.0 / sqrt(squares / width + EPSILON_NANO / 1e9);
    if constexpr (kLayer) {
      statistics[rows + row] = mean;
    }
  }
}

#endif
