// means[ceil(KEYS / BLOCK), KV_HEADS, HEAD_DIM] of k[KEYS, KV_HEADS, HEAD_DIM]: of each head of keys, the mean of each
// block of BLOCK rows that the last NEW of `length` rows have filled. Other means stay as they are. `length` lies in
// device memory: a captured launch serves a growing context. It is held to 0 … KEYS.
//
// k is CACHE, means are float32. With int8 as CACHE, a key is k times its head's scale in k_scales[KEYS, KV_HEADS]; for
// other types that is left out.
// FLOPs: an addition for each element read. Bytes: the rows of blocks that are filled, and their means.
// Requires: pointers aligned to 16 bytes; BLOCK at least 1.
// Launch: grid (KV_HEADS, NEW / BLOCK + 1), block THREADS.
//
// Neighbouring threads have neighbouring columns. Where a block has more threads than a head columns, they share the
// rows, and add up in their order what each has; threads that are left over are idle.

#include "common/types.cuh"

namespace {

constexpr int kShares = kThreads > kHeadSize ? kThreads / kHeadSize : 1;  // of the rows
constexpr int kStep = kThreads > kHeadSize ? kHeadSize : kThreads;        // columns at a time
constexpr bool kScaled = sizeof(CACHE) == 1;

static_assert(kUnroll >= 1, "a count");

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    pool_blocks(const CACHE* __restrict__ k, const float* __restrict__ k_scales, const int* __restrict__ length,
                float* __restrict__ means, int keys, int block, int rows_added) {
  __shared__ float sums[kThreads];
  const int rows = *length < 0 ? 0 : *length < keys ? *length : keys;
  const int before = rows - rows_added > 0 ? rows - rows_added : 0;
  const int filled = before / block + static_cast<int>(blockIdx.y);
  if ((filled + 1) * block > rows) {
    return;
  }
  const int head = static_cast<int>(blockIdx.x);
  const int heads = static_cast<int>(gridDim.x);
  const int thread = static_cast<int>(threadIdx.x);
  const long long first = static_cast<long long>(filled) * block;
  for (int column = thread % kStep; column < kHeadSize; column += kStep) {
    float sum = 0.0f;
    for (int row = thread / kStep; row < block; row += kShares * kUnroll) {
      float values[kUnroll];
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        const int at = row + i * kShares;
        values[i] = 0.0f;
        if (at < block) {
          const long long place = (first + at) * heads + head;
          values[i] = to_float(k[place * kHeadSize + column]);
          if constexpr (kScaled) {
            values[i] *= k_scales[place];
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        sum += values[i];
      }
    }
    if constexpr (kShares > 1) {
      sums[thread] = sum;
      __syncthreads();
      if (thread < kStep) {
#pragma unroll
        for (int i = 1; i < kShares; ++i) {
          sum += sums[thread + i * kStep];
        }
      }
    }
    if (thread < kStep) {
      means[(static_cast<long long>(filled) * heads + head) * kHeadSize + column] = sum / static_cast<float>(block);
    }
  }
}

#else

// The same in float64. Launch: grid (KV_HEADS, ceil(KEYS / BLOCK)), block 32.
extern "C" __global__ void pool_blocks_reference(const CACHE* __restrict__ k, const float* __restrict__ k_scales,
                                                 const int* __restrict__ length, double* __restrict__ means, int keys,
                                                 int block, int rows_added) {
  const int rows = *length < keys ? *length : keys;
  const int filled = static_cast<int>(blockIdx.y);
  const int end = (filled + 1) * block;
  if (end > rows || end <= rows - rows_added) {
    return;
  }
  const long long heads = gridDim.x;
  for (int column = static_cast<int>(threadIdx.x); column < HEAD_SIZE; column += 32) {
    double sum = 0.0;
    for (int row = end - block; row < end; ++row) {
      const long long place = row * heads + blockIdx.x;
      const double scale = sizeof(CACHE) == 1 ? k_scales[place] : 1.0;
      sum += static_cast<double>(to_float(k[place * HEAD_SIZE + column])) * scale;
    }
    means[(filled * heads + blockIdx.x) * HEAD_SIZE + column] = sum / block;
  }
}

#endif
