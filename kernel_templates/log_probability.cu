// y[r] = x[r,targets[r]] - log(sum(exp(x[r]))): the log-probability of a row's target under softmax, and 0 if the
// target is not a column index. x[ROWS,WIDTH] row-major, float32 or float16 storage, float32 arithmetic, y in float32.
//
// FLOPs: about 4·ROWS·WIDTH. Bytes: x once.
// Requires: pointers aligned to 16 bytes; ROWS, WIDTH >= 1, of any value.
// Launch: grid ceil(ROWS / ROWS_PER_BLOCK), block ROWS_PER_BLOCK · THREADS_PER_ROW.
//
// A row is read once: each thread keeps the largest of the values that it has seen and the sum of their exponentials
// relative to it, and scales the sum when a larger value comes. UNROLL vectors are loaded and processed at a time.

#include "common/row.cuh"

namespace {

constexpr int kThreads = kThreadsPerRow * kRowsPerBlock;
constexpr int kStep = kThreadsPerRow * kVector;  // columns a row's threads take at a time
constexpr float kLowest = -3.402823466e38f;      // finite, so that kLowest - kLowest is 0, not NaN

static_assert((kThreadsPerRow & (kThreadsPerRow - 1)) == 0, "groups of threads are powers of two");
static_assert(kThreads % 32 == 0 && kThreads <= 1024, "a block is whole warps");

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, kMinBlocks)
    log_probability(const STORAGE* __restrict__ x, const int* __restrict__ targets, float* __restrict__ y, int rows,
                    int width) {
  __shared__ float partial[2][kThreads / 32];
  const int row = static_cast<int>(blockIdx.x) * kRowsPerBlock + static_cast<int>(threadIdx.x) / kThreadsPerRow;
  const int lane = static_cast<int>(threadIdx.x) % kThreadsPerRow;
  const int end = row < rows ? width : 0;  // rows after the last take part in the barriers, but have no columns
  x += row < rows ? static_cast<long long>(row) * width : 0;

  float most = kLowest;
  float sum = 0.0f;
  for (int column = lane * kVector; column < end; column += kUnroll * kStep) {
    float value[kUnroll][kVector];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      load_floats<kRowsAligned>(value[u], x, column + u * kStep, end, Max::identity());
    }
    const float before = most;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        most = fmaxf(most, value[u][v]);
      }
    }
    sum *= __expf(before - most);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        sum += __expf(value[u][v] - most);
      }
    }
  }
  const float largest = group_reduce<Max, kReducePtx, kThreadsPerRow>(most, partial[0]);
  sum = group_reduce<Sum, kReducePtx, kThreadsPerRow>(sum * __expf(most - largest), partial[1]);
  if (lane == 0 && row < rows) {
    const int target = targets[row];
    y[row] = target >= 0 && target < width ? to_float(x[target]) - largest - logf(sum) : 0.0f;
  }
}

#else

// The same in float64: two passes, one warp per row.
// Launch: grid ROWS, block 32.
extern "C" __global__ void log_probability_reference(const STORAGE* __restrict__ x, const int* __restrict__ targets,
                                                     double* __restrict__ y, int rows, int width) {
  x += static_cast<long long>(blockIdx.x) * width;
  float most = kLowest;
  for (int column = 0; column < width; ++column) {
    most = fmaxf(most, to_float(x[column]));
  }
  double sum = 0.0;
  for (int column = static_cast<int>(threadIdx.x); column < width; column += 32) {
    sum += exp(static_cast<double>(to_float(x[column])) - most);
  }
  sum = warp_sum(sum);
  const int target = targets[blockIdx.x];
  if (threadIdx.x == 0) {
    y[blockIdx.x] = target >= 0 && target < width ? to_float(x[target]) - most - log(sum) : 0.0;
  }
}

#endif
