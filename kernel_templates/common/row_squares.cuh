#pragma once

#include "reduce.cuh"

// Sums of the squares of COUNT rows, by the WARP_COUNT warps of a block that took their columns.
template <int COUNT, int WARP_COUNT>
struct RowSquares {
  float sum[COUNT][WARP_COUNT];

  // Leaves a warp's share, of which a thread took `squares`; all of its lanes must take part.
  __device__ __forceinline__ void leave(const float (&squares)[COUNT]) {
#pragma unroll
    for (int m = 0; m < COUNT; ++m) {
      const float total = warp_reduce<Sum, false>(squares[m]);
      if (threadIdx.x % 32 == 0) {
        sum[m][threadIdx.x / 32] = total;
      }
    }
  }

  // What RMSNorm multiplies a row of k columns by.
  __device__ __forceinline__ float factor(int m, int k, float epsilon) const {
    float total = 0.0f;
#pragma unroll
    for (int warp = 0; warp < WARP_COUNT; ++warp) {
      total += sum[m][warp];
    }
    return rsqrtf(total / static_cast<float>(k) + epsilon);
  }
};
