#pragma once

#include "matrix.cuh"
#include "types.cuh"
#include "vector.cuh"

// One operand of a matrix product on its way from global to shared memory: BLOCK rows of a row-major matrix
// [rows, depth] of T, a slice of DEPTH columns at a time, loaded by THREADS threads as vectors. ALONG_ROWS:
// neighbouring threads load along a row as far as the slice goes; else they load different rows. ALIGNED: rows begin at
// whole vectors. Row r lies in column r ^ SWAPPED_BY of shared memory, as load_fragment expects it.
template <typename T, int THREADS, int BLOCK, int DEPTH, int VECTOR_SIZE, int PADDED_BY, bool ALONG_ROWS, bool ALIGNED,
          int SWAPPED_BY = 0>
struct Operand {
  static constexpr int kRow = BLOCK + PADDED_BY;  // floats of a row in shared memory
  static constexpr int kLoads = BLOCK * DEPTH / VECTOR_SIZE / THREADS;
  static constexpr int kVectorsPerRow = DEPTH / VECTOR_SIZE;
  static_assert(DEPTH % VECTOR_SIZE == 0, "a slice's row is whole vectors");
  static_assert(kLoads * THREADS * VECTOR_SIZE == BLOCK * DEPTH, "threads share a slice evenly");
  static_assert(PADDED_BY % 4 == 0, "rows in shared memory stay aligned");

  const T* source[kLoads];
  Vector<T, VECTOR_SIZE> staged[kLoads];

  static __device__ __forceinline__ int row_of(int load) {
    const int index = static_cast<int>(threadIdx.x) + load * THREADS;
    return ALONG_ROWS ? index / kVectorsPerRow : index % BLOCK;
  }
  static __device__ __forceinline__ int k_of(int load) {
    const int index = static_cast<int>(threadIdx.x) + load * THREADS;
    return (ALONG_ROWS ? index % kVectorsPerRow : index / BLOCK) * VECTOR_SIZE;
  }

  __device__ __forceinline__ Operand(const T* __restrict__ elements, int first_row, int rows, int first_k, int depth) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int row = first_row + row_of(i);
      source[i] = elements + static_cast<long long>(row < rows ? row : rows - 1) * depth + (first_k + k_of(i));
    }
  }

  // Reads this thread's share of the first slice, of which `filled` columns lie in the matrix.
  __device__ __forceinline__ void load_first(int filled) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
#pragma unroll
      for (int v = 0; v < VECTOR_SIZE; ++v) {
        staged[i].element[v] = k_of(i) + v < filled ? source[i][v] : T{};
      }
      source[i] += filled;
    }
  }

  __device__ __forceinline__ void load_next() {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if constexpr (ALIGNED) {
        staged[i] = load_vector<VECTOR_SIZE>(source[i]);
      } else {
#pragma unroll
        for (int v = 0; v < VECTOR_SIZE; ++v) {
          staged[i].element[v] = source[i][v];
        }
      }
      source[i] += DEPTH;
    }
  }

  // Writes the staged share of `matrix` to shared memory as [DEPTH, kRow] floats.
  __device__ __forceinline__ void store(float* shared, const Matrix<T>& matrix) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
#pragma unroll
      for (int v = 0; v < VECTOR_SIZE; ++v) {
        shared[(k_of(i) + v) * kRow + (row_of(i) ^ SWAPPED_BY)] = matrix(staged[i], v);
      }
    }
  }
};
