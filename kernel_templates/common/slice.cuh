#pragma once

// Slices of a matrix on their way through registers to shared memory, where they are kept as floats.

#include "vector.cuh"
#include "widen.cuh"

// Floats that a thread with COUNT values reads or writes at once.
template <int COUNT>
constexpr int kChunkOf = COUNT % 4 == 0   ? 4
                         : COUNT % 2 == 0 ? 2
                                          : 1;

// One of THREADS threads' share of slices of ROWS x COLUMNS elements of a matrix, read WIDTH elements at a time; with
// ALIGNED, as vectors.
template <typename T, int THREADS, int ROWS, int COLUMNS, int WIDTH, bool ALIGNED>
struct Slice {
  static constexpr int kVectorsPerRow = COLUMNS / WIDTH;
  static constexpr int kRowStep = THREADS / kVectorsPerRow;  // between a thread's loads
  static constexpr int kLoads = (ROWS + kRowStep - 1) / kRowStep;
  static_assert(THREADS % kVectorsPerRow == 0, "a thread's loads lie in the same columns");

  const T* address;  // of the next slice's first load
  long long step;    // elements between loads
  int rows;          // of the matrix, counted from the first load's
  Vector<T, WIDTH> staged[kLoads] = {};

  __device__ __forceinline__ static int row() { return static_cast<int>(threadIdx.x) / kVectorsPerRow; }
  __device__ __forceinline__ static int column() { return static_cast<int>(threadIdx.x) % kVectorsPerRow * WIDTH; }

  // Slices of `matrix`, whose rows are `stride` apart; `count` of them exist.
  __device__ __forceinline__ Slice(const T* matrix, long long stride, int count)
      : address(matrix + row() * stride + column()), step(kRowStep * stride), rows(count - row()) {}

  __device__ __forceinline__ static bool has(int load) {
    return ROWS % kRowStep == 0 || row() + load * kRowStep < ROWS;
  }

  // Rows beyond the matrix keep what an earlier slice had there, zeros at first: nothing that counts, but no NaN that
  // was not in the matrix.
  __device__ __forceinline__ void load() {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (has(i) && i * kRowStep < rows) {
        if constexpr (ALIGNED) {
          staged[i] = load_vector<WIDTH>(address + i * step);
        } else {
#pragma unroll
          for (int e = 0; e < WIDTH; ++e) {
            staged[i].element[e] = address[i * step + e];
          }
        }
      }
    }
  }

  // As COLUMNS rows of ROW floats.
  template <int ROW>
  __device__ __forceinline__ void store_transposed(float* shared) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (has(i)) {
        const Vector<float, WIDTH> values = widen(staged[i]);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
          shared[(column() + e) * ROW + row() + i * kRowStep] = values.element[e];
        }
      }
    }
  }

  // As ROWS rows of COLUMNS floats.
  __device__ __forceinline__ void store(float* shared) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (has(i)) {
        const Vector<float, WIDTH> values = widen(staged[i]);
#pragma unroll
        for (int e = 0; e < WIDTH; e += 4) {
          const Vector<float, 4> part{
              {values.element[e], values.element[e + 1], values.element[e + 2], values.element[e + 3]}};
          store_vector(shared + (row() + i * kRowStep) * COLUMNS + column() + e, part);
        }
      }
    }
  }
};

// Reads a thread's values of one shared row: COUNT floats in chunks CHUNK wide, STRIDE apart.
template <int CHUNK, int STRIDE, int COUNT>
__device__ __forceinline__ void load_fragment(float (&fragment)[COUNT], const float* shared) {
#pragma unroll
  for (int c = 0; c < COUNT / CHUNK; ++c) {
    const auto chunk = load_vector<CHUNK>(shared + c * STRIDE);
#pragma unroll
    for (int i = 0; i < CHUNK; ++i) {
      fragment[c * CHUNK + i] = chunk.element[i];
    }
  }
}
