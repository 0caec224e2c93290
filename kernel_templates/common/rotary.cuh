#pragma once

#include "row.cuh"

// A thread's part of a head that is rotated in pairs of elements j and j + HALF: its slots j come in chunks of N
// neighbours, STEP apart.
template <int HALF, int STEP, int N>
struct RotaryPart {
  static constexpr int kChunks = (HALF + STEP - 1) / STEP;
  float low[kChunks][N];   // the pairs' first elements, or cosines
  float high[kChunks][N];  // their second elements, or sines

  // Reads the slots from `first` on that lie before `end`, zeros for the others. ALIGNED as for load_floats.
  template <bool ALIGNED, typename T>
  __device__ __forceinline__ void load(const T* head, int first, int end) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      load_floats<ALIGNED>(low[c], head, first + c * STEP, end);
      load_floats<ALIGNED>(high[c], head + HALF, first + c * STEP, end);
    }
  }

  template <bool ALIGNED, typename T>
  __device__ __forceinline__ void store(T* head, int first, int end) const {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      store_floats<ALIGNED>(head, first + c * STEP, end, low[c]);
      store_floats<ALIGNED>(head + HALF, first + c * STEP, end, high[c]);
    }
  }

  __device__ __forceinline__ void rotate(const RotaryPart& turn) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
#pragma unroll
      for (int v = 0; v < N; ++v) {
        const float first = low[c][v];
        const float second = high[c][v];
        low[c][v] = first * turn.low[c][v] - second * turn.high[c][v];
        high[c][v] = second * turn.low[c][v] + first * turn.high[c][v];
      }
    }
  }
};

// Positions outside of a table take its first or last row.
__device__ __forceinline__ int clamp_row(int row, int rows) { return max(0, min(row, rows - 1)); }
