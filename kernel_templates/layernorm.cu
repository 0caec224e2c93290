// y[r] = (s[r] - mean) / sqrt(variance + 1e-6) · weight + bias for each row r, with s = x, or s = x + residual where a
// residual is added: then `residual` receives s. The variance is the biased one. x[ROWS,WIDTH], residual[ROWS,WIDTH]
// and y[ROWS,WIDTH] row-major, weight[WIDTH], bias[WIDTH]. float32 or float16 storage, float32 statistics.
// With int8 as OUTPUT y is rounded for a product with a quantized weight: scales[WIDTH / 32, ROWS], or with ROW_SCALES
// scales[ROWS], receives the scales; WIDTH is a multiple of 32 then.
//
// FLOPs: about 7·ROWS·WIDTH. Bytes: x and y once, residual read and written, weight and bias once.
// Requires: pointers aligned to 16 bytes; ROWS, WIDTH >= 1, of any value; y and residual overlap nothing else.
// Launch: grid ceil(ROWS / ROWS_PER_BLOCK), block ROWS_PER_BLOCK · THREADS_PER_ROW.
//
// A row's threads take its columns in turns, VECTOR at a time. Each holds its first HELD vectors in registers
// for all three passes; only rows that are wider are read again. The variance is summed from differences to the mean,
// since mean(s²) - mean² cancels where the mean is large.

#include "common/row.cuh"
#include "common/row_output.cuh"

namespace {

constexpr int kThreads = kThreadsPerRow * kRowsPerBlock;
constexpr int kStep = kThreadsPerRow * kVector;  // columns a row's threads take at a time
constexpr float kEpsilon = 1e-6f;

using Output = RowOutput<OUTPUT, kRowScales, kRowsAligned, kVector, kThreadsPerRow>;

static_assert((kThreadsPerRow & (kThreadsPerRow - 1)) == 0, "groups of threads are powers of two");
static_assert(kThreads % 32 == 0 && kThreads <= 1024, "a block is whole warps");
static_assert(kVector >= 1 && kHeld >= 1 && (HELD_VECTORS == 0 || HELD_VECTORS == kHeld), "counts");

// The sum of the elements that lie in the row.
__device__ __forceinline__ float sum_of(const float (&value)[kVector]) {
  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    sum += value[v];
  }
  return sum;
}

__device__ __forceinline__ float squared_distances(const float (&value)[kVector], float mean, int column, int end) {
  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    const float distance = value[v] - mean;
    sum += column + v < end ? distance * distance : 0.0f;
  }
  return sum;
}

// How a row is normalised and scaled.
struct Scale {
  float mean;
  float factor;
};

__device__ __forceinline__ void scale_result(float (&value)[kVector], const float (&weight)[kVector],
                                             const float (&bias)[kVector], Scale scale) {
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    value[v] = (value[v] - scale.mean) * scale.factor * weight[v] + bias[v];
  }
}

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, kMinBlocks)
    layernorm(const STORAGE* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
              OUTPUT* __restrict__ y, float* __restrict__ scales, STORAGE* __restrict__ residual, int rows, int width) {
  __shared__ float partial[2][kThreads / 32];
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
  float weights[kHeld][kVector];
  float biases[kHeld][kVector];
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    load_sum<kRowsAligned, kAddResidual>(held[i], x, residual, first + i * kStep, end);
  }
  if constexpr (kPrefetchWeight) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      load_floats<kRowsAligned>(weights[i], weight, first + i * kStep, end);
      load_floats<kRowsAligned>(biases[i], bias, first + i * kStep, end);
    }
  }

  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    sum += sum_of(held[i]);
  }
  if constexpr (!kRowsHeld) {
    for (int column = first + kHeld * kStep; column < end; column += kStep) {
      float value[kVector];
      load_sum<kRowsAligned, kAddResidual>(value, x, residual, column, end);
      sum += sum_of(value);
    }
  }
  const float mean = group_reduce<Sum, kReducePtx, kThreadsPerRow>(sum, partial[0]) / static_cast<float>(width);

  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    squares += squared_distances(held[i], mean, first + i * kStep, end);
  }
  if constexpr (!kRowsHeld) {
    for (int column = first + kHeld * kStep; column < end; column += kStep) {
      float value[kVector];
      load_sum<kRowsAligned, kAddResidual>(value, x, residual, column, end);
      squares += squared_distances(value, mean, column, end);
    }
  }
  squares = group_reduce<Sum, kReducePtx, kThreadsPerRow>(squares, partial[1]);
  const Scale scale{mean, rsqrtf(squares / static_cast<float>(width) + kEpsilon)};

  // Columns behind those held; all threads make the same number of turns.
  const int others = first + kHeld * kStep;
  const int others_end = width + first;
  const auto scale_other = [&](float(&value)[kVector], int column) {
    load_floats<kRowsAligned>(weights[0], weight, column, end);
    load_floats<kRowsAligned>(biases[0], bias, column, end);
    scale_result(value, weights[0], biases[0], scale);
  };
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if constexpr (!kPrefetchWeight) {
      load_floats<kRowsAligned>(weights[i], weight, first + i * kStep, end);
      load_floats<kRowsAligned>(biases[i], bias, first + i * kStep, end);
    }
    if constexpr (kAddResidual) {
      store_floats<kRowsAligned>(residual, first + i * kStep, end, held[i]);
    }
    scale_result(held[i], weights[i], biases[i], scale);
    output.measure(held[i], first + i * kStep, end);
  }
  if constexpr (!kRowsHeld && Output::kMeasures) {
    for_sums<kRowsAligned, kAddResidual, kVector>(x, residual, others, kStep, others_end, end,
                                                  [&](float(&value)[kVector], int column) {
                                                    scale_other(value, column);
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
                                                    scale_other(value, column);
                                                    output.store(value, column, end);
                                                  });
  }
}

#else

// The same in float64, one warp a row.
// Launch: grid ROWS, block 32.
extern "C" __global__ void layernorm_reference(const STORAGE* __restrict__ x, const float* __restrict__ weight,
                                               const float* __restrict__ bias, double* __restrict__ y,
                                               double* __restrict__ scales, double* __restrict__ residual, int rows,
                                               int width) {
  const long long offset = static_cast<long long>(blockIdx.x) * width;
  double sum = 0.0;
  for (int column = static_cast<int>(threadIdx.x); column < width; column += 32) {
    double value = to_float(x[offset + column]);
    if constexpr (kAddResidual) {
      value += residual[offset + column];
      residual[offset + column] = value;
    }
    y[offset + column] = value;
    sum += value;
  }
  const double mean = warp_sum(sum) / width;
  double squares = 0.0;
  for (int column = static_cast<int>(threadIdx.x); column < width; column += 32) {
    const double distance = y[offset + column] - mean;
    squares += distance * distance;
  }
  const double deviation = sqrt(warp_sum(squares) / width + 1e-6);
  for (int column = static_cast<int>(threadIdx.x); column < width; column += 32) {
    y[offset + column] = (y[offset + column] - mean) / deviation * weight[column] + bias[column];
  }
  scale_reference<OUTPUT>(y + offset, scales, static_cast<int>(blockIdx.x), rows, width, kRowScales);
}

#endif
