#pragma once

// Attention whose keys several blocks share: each gives unnormalised sums with their softmax states, which the block
// that arrives last combines in the order of the splits, so that the result does not depend on who came last.

#include "online_softmax.cuh"
#include "split.cuh"
#include "vector.cuh"

// Floats that one block of THREADS, with ROWS x COLUMNS sums a thread and BLOCK_ROWS rows, leaves for the others: sums,
// each of all threads side by side (as in tile_sums.cuh), then the maxima, then the sums of weights.
template <int THREADS, int BLOCK_ROWS, int ROWS, int COLUMNS>
struct SplitSoftmax {
  static constexpr int kStates = THREADS * ROWS * COLUMNS;
  static constexpr int kFloats = kStates + 2 * BLOCK_ROWS;

  // `rows`: where in the block a thread's rows are; `leads`: true in the one thread that writes their states.
  // `partials` are those of the first of `splits` blocks. True in the block that has combined them.
  static __device__ __forceinline__ bool combine(float (&sum)[ROWS][COLUMNS], OnlineSoftmax (&state)[ROWS],
                                                 const int (&rows)[ROWS], bool leads, float* partials, int* counter,
                                                 int split, int splits) {
    write(sum, state, rows, leads, partials + static_cast<long long>(split) * kFloats);
    if (!arrived_last(counter, splits)) {
      return false;
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      state[i] = OnlineSoftmax::empty();
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) {
        sum[i][j] = 0.0f;
      }
    }
#pragma unroll 1
    for (int other = 0; other < splits; ++other) {
      add(sum, state, rows, partials + static_cast<long long>(other) * kFloats);
    }
    return true;
  }

 private:
  static __device__ __forceinline__ void write(const float (&sum)[ROWS][COLUMNS], const OnlineSoftmax (&state)[ROWS],
                                               const int (&rows)[ROWS], bool leads, float* own) {
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) {
        own[(i * COLUMNS + j) * THREADS + threadIdx.x] = sum[i][j];
      }
      if (leads) {
        own[kStates + rows[i]] = state[i].maximum;
        own[kStates + BLOCK_ROWS + rows[i]] = state[i].sum;
      }
    }
  }

  static __device__ __forceinline__ void add(float (&sum)[ROWS][COLUMNS], OnlineSoftmax (&state)[ROWS],
                                             const int (&rows)[ROWS], const float* other) {
    float maximum[ROWS];
    float weight[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      maximum[i] = load_written<1>(other + kStates + rows[i]).element[0];
      weight[i] = load_written<1>(other + kStates + BLOCK_ROWS + rows[i]).element[0];
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      float parts[COLUMNS];
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) {
        parts[j] = load_written<1>(other + (i * COLUMNS + j) * THREADS + threadIdx.x).element[0];
      }
      const float factor = state[i].raise(maximum[i]);
      const float scale = power_of_2(maximum[i] - state[i].maximum);
      state[i].sum += weight[i] * scale;
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) {
        sum[i][j] = sum[i][j] * factor + scale * parts[j];
      }
    }
  }
};
