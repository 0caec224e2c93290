// y[r] = s[r] / sqrt(mean(s[r]²) + ε) · weight for each row r, with s = x, or s = x + residual where a residual is
// added: then `residual` receives s. x[ROWS,WIDTH], residual[ROWS,WIDTH] and y[ROWS,WIDTH] row-major, weight[WIDTH].
// ε is EPSILON billionths. float32 or float16 storage, float32 statistics. With int8 as OUTPUT y is rounded for a
// product with a quantized weight: scales[WIDTH / 32, ROWS], or with ROW_SCALES scales[ROWS], receives the scales;
// WIDTH is a multiple of 32 then.
//
// FLOPs: about 4·ROWS·WIDTH. Bytes: x and y once, residual read and written, weight once.
// Requires: pointers aligned to 16 bytes; ROWS, WIDTH >= 1, of any value; y and residual overlap nothing else.
// Launch: grid ceil(ROWS / ROWS_PER_BLOCK), block ROWS_PER_BLOCK · THREADS_PER_ROW.
//
// A row's threads take its columns in turns, VECTOR at a time. Each holds its first HELD vectors in registers
// between the sum of squares and the scaling; only rows that are wider are read again.

#include "common/row.cuh"
#include "common/row_output.cuh"

namespace {

constexpr int kThreads = kThreadsPerRow * kRowsPerBlock;
constexpr int kStep = kThreadsPerRow * kVector;  // columns a row's threads take at a time
constexpr float kEpsilon = static_cast<float>(EPSILON_NANO / 1e9);

using Output = RowOutput<OUTPUT, kRowScales, kRowsAligned, kVector, kThreadsPerRow>;

static_assert((kThreadsPerRow & (kThreadsPerRow - 1)) == 0, "groups of threads are powers of two");
static_assert(kThreads % 32 == 0 && kThreads <= 1024, "a block is whole warps");
static_assert(kVector >= 1 && kHeld >= 1 && (HELD_VECTORS == 0 || HELD_VECTORS == kHeld), "counts");

__device__ __forceinline__ float sum_of_squares(const float (&value)[kVector]) {
  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    sum += value[v] * value[v];
  }
  return sum;
}

__device__ __forceinline__ void scale_result(float (&value)[kVector], const float (&weight)[kVector], float factor) {
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    value[v] *= factor * weight[v];
  }
}

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, kMinBlocks)
    rmsnorm(const STORAGE* __restrict__ x, const float* __restrict__ weight, OUTPUT* __restrict__ y,
            float* __restrict__ scales, STORAGE* __restrict__ residual, int rows, int width) {
  __shared__ float partial[kThreads / 32];
  const int row = static_cast<int>(blockIdx.x) * kRowsPerBlock + static_cast<int>(threadIdx.x) / kThreadsPerRow;
  const int first = static_cast<int>(threadIdx.x) % kThreadsPerRow * kVector;
  const int end = row < rows ? width : 0;  // rows behind the last take part in the barriers, but have no columns
  const long long offset = row < rows ? static_cast<long long>(row) * width : 0;
  x += offset;
  Output output(y, scales, row, rows, width);
  if constexpr (kAddResidual) {
    residual += offset;
  }

  float held[kHeld][kVector];
  float scale[kHeld][kVector];
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    load_sum<kRowsAligned, kAddResidual>(held[i], x, residual, first + i * kStep, end);
  }
  if constexpr (kPrefetchWeight) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      load_floats<kRowsAligned>(scale[i], weight, first + i * kStep, end);
    }
  }
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    sum += sum_of_squares(held[i]);
  }
  if constexpr (!kRowsHeld) {
    for (int column = first + kHeld * kStep; column < end; column += kStep) {
      float value[kVector];
      load_sum<kRowsAligned, kAddResidual>(value, x, residual, column, end);
      sum += sum_of_squares(value);
    }
  }

  sum = group_reduce<Sum, kReducePtx, kThreadsPerRow>(sum, partial);
  const float factor = rsqrtf(sum / static_cast<float>(width) + kEpsilon);

  // Columns behind those held; all threads make the same number of turns.
  const int others = first + kHeld * kStep;
  const int others_end = width + first;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if constexpr (!kPrefetchWeight) {
      load_floats<kRowsAligned>(scale[i], weight, first + i * kStep, end);
    }
    if constexpr (kAddResidual) {
      store_floats<kRowsAligned>(residual, first + i * kStep, end, held[i]);
    }
    scale_result(held[i], scale[i], factor);
    output.measure(held[i], first + i * kStep, end);
  }
  if constexpr (!kRowsHeld && Output::kMeasures) {
    for_sums<kRowsAligned, kAddResidual, kVector>(x, residual, others, kStep, others_end, end,
                                                  [&](float(&value)[kVector], int column) {
                                                    load_floats<kRowsAligned>(scale[0], weight, column, end);
                                                    scale_result(value, scale[0], factor);
                                                    output.measure(value, column, end);
                                                  });
  }
  output.settle();
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    output.store(held[i], first + i * kStep, end);
  }
  if constexpr (!kRowsHeld) {
    for_sums<kRowsAligned, kAddResidual, kVector>(x, residual, others, kStep, others_end, end,
                                                  [&](float(&value)[kVector], int column) {
                                                    if constexpr (kAddResidual) {
                                                      store_floats<kRowsAligned>(residual, column, end, value);
                                                    }
                                                    load_floats<kRowsAligned>(scale[0], weight, column, end);
                                                    scale_result(value, scale[0], factor);
                                                    output.store(value, column, end);
                                                  });
  }
}

#else

// The same in float64, one warp a row.
// Launch: grid ROWS, block 32.
extern "C" __global__ void rmsnorm_reference(const STORAGE* __restrict__ x, const float* __restrict__ weight,
                                             double* __restrict__ y, double* __restrict__ scales,
                                             double* __restrict__ residual, int rows, int width) {
  const long long offset = static_cast<long long>(blockIdx.x) * width;
  double sum = 0.0;
  for (int column = static_cast<int>(threadIdx.x); column < width; column += 32) {
    double value = to_float(x[offset + column]);
    if constexpr (kAddResidual) {
      value += residual[offset + column];
      residual[offset + column] = value;
    }
    y[offset + column] = value;
    sum += value * value;
  }
  sum = warp_sum(sum);
  for (int column = static_cast<int>(threadIdx.x); column < width; column += 32) {
    y[offset + column] *= weight[column] / sqrt(sum / width + EPSILON_NANO / 1e9);
  }
  scale_reference<OUTPUT>(y + offset, scales, static_cast<int>(blockIdx.x), rows, width, kRowScales);
}

#endif
