#pragma once

// Rows of activations times the weights of an RMSNorm. What they are divided by, the roots of their mean squares, is
// left to the sums of their products, so that nothing waits for it.

#include "row.cuh"
#include "row_squares.cuh"

// Rows of T as they are in the cache; for RowProducts.
template <typename T>
struct NormedRows {
  const T* x;
  const float* norm;
  int k;

  template <bool ALIGNED, bool INSIDE, int N>
  __device__ __forceinline__ void load(float (&values)[N], int m, int column, int end) const {
    float weights[N];
    load_floats<ALIGNED>(values, x + static_cast<long long>(m) * k, column, end);
    load_floats<ALIGNED>(weights, norm, column, end);
#pragma unroll
    for (int v = 0; v < N; ++v) {
      values[v] *= weights[v];
    }
  }
};

// Elements from one row in shared memory to the next: whole vectors.
__device__ __forceinline__ int staged_stride(int k) { return (k + 7) / 8 * 8; }

// Sums up the squares of the rows of k columns by all THREADS threads of the block, and with STAGED_ROWS puts their
// products with the norm's weights into shared memory. A barrier must follow. ALIGNED: k is a multiple of 4.
template <bool STAGED_ROWS, bool ALIGNED, int THREADS, int COUNT, int WARP_COUNT, typename T>
__device__ __forceinline__ void normalise_rows(RowSquares<COUNT, WARP_COUNT>& squares, float* staged, const T* x,
                                               const float* norm, int k) {
  float sums[COUNT] = {};
  for (int column = static_cast<int>(threadIdx.x) * 4; column < k; column += 4 * THREADS) {
    float weights[4];
    load_floats<ALIGNED>(weights, norm, column, k);
#pragma unroll
    for (int m = 0; m < COUNT; ++m) {
      float values[4];
      load_floats<ALIGNED>(values, x + static_cast<long long>(m) * k, column, k);
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        sums[m] = fmaf(values[v], values[v], sums[m]);
        values[v] *= weights[v];
      }
      if constexpr (STAGED_ROWS) {
        store_floats<true>(staged + m * staged_stride(k), column, staged_stride(k), values);
      }
    }
  }
  squares.leave(sums);
}

// Copies COUNT rows of k floats, which other blocks may have written, into shared memory, staged_stride(k) apart, by
// all THREADS threads of the block. A barrier must follow. ALIGNED: k is a multiple of 4.
template <int COUNT, bool ALIGNED, int THREADS>
__device__ __forceinline__ void stage_rows(float* staged, const float* rows, int k) {
#pragma unroll
  for (int m = 0; m < COUNT; ++m) {
#pragma unroll 4
    for (int column = static_cast<int>(threadIdx.x) * 4; column < k; column += 4 * THREADS) {
      float values[4];
      load_floats<ALIGNED>(values, rows + static_cast<long long>(m) * k, column, k);
      store_floats<true>(staged + m * staged_stride(k), column, staged_stride(k), values);
    }
  }
}
