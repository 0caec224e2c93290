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
// ALIGNED, as vectors. Rows beyond the matrix read its last one, so that loading checks nothing. Threads beyond the
// last whole row of vectors load values that are not used.
template <typename T, int THREADS, int ROWS, int COLUMNS, int WIDTH, bool ALIGNED>
struct Slice {
  static constexpr int kVectorsPerRow = COLUMNS / WIDTH;
  static constexpr int kRowStep = THREADS / kVectorsPerRow;  // between a thread's loads, which lie in the same columns
  static constexpr int kUsed = kRowStep * kVectorsPerRow;    // threads with vectors of use
  static constexpr int kLoads = (ROWS + kRowStep - 1) / kRowStep;
  static_assert(COLUMNS % WIDTH == 0 && kRowStep >= 1, "a row is whole vectors, at most one for each thread");

  const T* matrix;  // this thread's column of row 0
  int stride;       // of the matrix, in elements
  int last_row;     // of the matrix
  const T* source[kLoads];
  Vector<T, WIDTH> staged[kLoads];

  __device__ __forceinline__ static int row() { return static_cast<int>(threadIdx.x) / kVectorsPerRow; }
  __device__ __forceinline__ static int column() { return static_cast<int>(threadIdx.x) % kVectorsPerRow * WIDTH; }

  __device__ __forceinline__ Slice(const T* first, int row_stride, int last)
      : matrix(first + column()), stride(row_stride), last_row(last) {}

  // False for threads beyond a slice of fewer vectors than threads.
  __device__ __forceinline__ static bool has(int load) {
    return (kUsed == THREADS || static_cast<int>(threadIdx.x) < kUsed) &&
           (ROWS % kRowStep == 0 || row() + load * kRowStep < ROWS);
  }

  // The next slice begins at `first_row`, in the matrix' first column.
  __device__ __forceinline__ void move_to(int first_row) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int wanted = first_row + row() + i * kRowStep;
      source[i] = matrix + static_cast<long long>(wanted < last_row ? wanted : last_row) * stride;
    }
  }

  // The next slice has the rows that `row_of` gives for 0 … ROWS-1, which are rows of the matrix.
  template <typename RowOf>
  __device__ __forceinline__ void move_to_rows(RowOf row_of) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      source[i] = matrix + static_cast<long long>(row_of(has(i) ? row() + i * kRowStep : 0)) * stride;
    }
  }

  __device__ __forceinline__ void move_columns(int columns) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      source[i] += columns;
    }
  }

  __device__ __forceinline__ void load() {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if constexpr (ALIGNED) {
        staged[i] = load_vector<WIDTH>(source[i]);
      } else {
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
          set_element(staged[i], e, source[i][e]);
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

  // As ROWS rows, ROW floats apart, of which COLUMNS are written.
  template <int ROW>
  __device__ __forceinline__ void store(float* shared) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (has(i)) {
        const Vector<float, WIDTH> values = widen(staged[i]);
#pragma unroll
        for (int e = 0; e < WIDTH; e += 4) {
          const Vector<float, 4> part{
              {values.element[e], values.element[e + 1], values.element[e + 2], values.element[e + 3]}};
          store_vector(shared + (row() + i * kRowStep) * ROW + column() + e, part);
        }
      }
    }
  }
};

// Calls `body` with each slice, the shared buffer it is in, and whether another one follows. Two at a time, for then
// the buffer is a constant.
template <int SLICES, typename Body>
__device__ __forceinline__ void for_each_slice(Body body) {
  constexpr int kPaired = SLICES / 2 * 2;
#pragma unroll 1
  for (int slice = 0; slice < kPaired; slice += 2) {
    body(slice, 0, true);
    body(slice + 1, 1, slice + 2 < SLICES);
  }
  if constexpr (kPaired < SLICES) {
    body(SLICES - 1, 0, false);
  }
}
