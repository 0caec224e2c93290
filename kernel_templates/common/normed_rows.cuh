#pragma once

// Rows of activations times the weights of an RMSNorm. What they are divided by, the roots of their mean squares, is
// left to the sums of their products, so that nothing waits for it.

#include "awaited.cuh"
#include "row.cuh"
#include "row_squares.cuh"
#include "words.cuh"

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

// The same, with the sums of the squares of what a lane reads of each of COUNT rows, before the norm's weights.
template <typename T, int COUNT>
struct SquaredRows {
  NormedRows<T> rows;
  float (&squares)[COUNT];

  template <bool ALIGNED, bool INSIDE, int N>
  __device__ __forceinline__ void load(float (&values)[N], int m, int column, int end) const {
    float weights[N];
    const int last = INSIDE ? column + 1 : end;
    load_floats<ALIGNED>(values, rows.x + static_cast<long long>(m) * rows.k, column, last);
    load_floats<ALIGNED>(weights, rows.norm, column, last);
#pragma unroll
    for (int v = 0; v < N; ++v) {
      squares[m] = fmaf(values[v], values[v], squares[m]);
      values[v] *= weights[v];
    }
  }
};

// Rows of floats in shared memory of which a lane reads LANE_COLUMNS neighbouring columns at a time, the 32 lanes of a
// warp one behind the other; for RowProducts. Where LANE_COLUMNS takes two loads of four columns, the second fours of
// the lanes lie behind all first ones: neighbouring lanes read neighbouring words, where else each load would take
// twice as long.
template <int LANE_COLUMNS>
struct StagedRows {
  static constexpr int kTogether = LANE_COLUMNS == 8 ? 256 : 8;  // columns that are placed among themselves

  const float* elements;  // for LANE_COLUMNS 8 as far before the row as this lane's columns lie before their number
  int elements_of_row;

  __device__ __forceinline__ StagedRows(const float* staged, int k)
      : elements(LANE_COLUMNS == 8 ? staged - threadIdx.x % 32 * 4 : staged), elements_of_row(stride(k)) {}

  // From one row to the next.
  static __device__ __forceinline__ int stride(int k) {
    return static_cast<int>((static_cast<unsigned int>(k) + kTogether - 1) / kTogether * kTogether);
  }

  // Of four columns that begin at `column`.
  static __device__ __forceinline__ int place(int column) {
    const unsigned int at = static_cast<unsigned int>(column);  // whose quotients are shifts
    return static_cast<int>(LANE_COLUMNS == 8 ? at / 256 * 256 + at % 8 / 4 * 128 + at % 256 / 8 * 4 : at);
  }

  // Those of the columns that lie behind the last are zeros.
  template <bool ALIGNED, bool INSIDE, int N>
  __device__ __forceinline__ void load(float (&values)[N], int m, int column, int /*end*/) const {
    static_assert(N == LANE_COLUMNS, "the order of columns");
    constexpr int kPiece = N < 4 ? N : 4;
#pragma unroll
    for (int first = 0; first < N; first += kPiece) {
      Vector<float, kPiece> piece{};
      if (INSIDE || column < elements_of_row) {
        piece = load_vector<kPiece>(elements + m * elements_of_row + column + first / 4 * 128);
      }
#pragma unroll
      for (int v = 0; v < kPiece; ++v) {
        values[first + v] = piece.element[v];
      }
    }
  }
};

// Sums up the squares of the rows of k columns by all THREADS threads of the block. A barrier must follow. ALIGNED: k
// is a multiple of 4.
template <bool ALIGNED, int THREADS, int COUNT, int WARP_COUNT, typename T>
__device__ __forceinline__ void square_rows(RowSquares<COUNT, WARP_COUNT>& squares, const T* x, int k) {
  float sums[COUNT] = {};
  for (int column = static_cast<int>(threadIdx.x) * 4; column < k; column += 4 * THREADS) {
#pragma unroll
    for (int m = 0; m < COUNT; ++m) {
      float values[4];
      load_floats<ALIGNED>(values, x + static_cast<long long>(m) * k, column, k);
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        sums[m] = fmaf(values[v], values[v], sums[m]);
      }
    }
  }
  squares.leave(sums);
}

// That, and the rows' products with the norm's weights in shared memory, in two steps, so that a block may ask for
// other things in between: behind the loads of many weights those of the rows would come late. A thread takes four
// columns of every 4 * THREADS; ROUNDS times so many are on their way at once. MORE: a row may have more than these.
template <int COUNT, int THREADS, int ROUNDS, bool MORE, bool ALIGNED, typename T>
struct RowColumns {
  static constexpr int kRound = 4 * THREADS;

  const T* x;
  const float* norm;
  int k;
  Words<T, 4> values[ROUNDS][COUNT];
  Words<float, 4> weights[ROUNDS];

  static __device__ __forceinline__ int first_column() { return static_cast<int>(threadIdx.x) * 4; }

  // The columns at `begin` and kRound, 2 * kRound … behind it begin their way; those behind the last are zeros.
  __device__ __forceinline__ void load(int begin) {
#pragma unroll
    for (int i = 0; i < ROUNDS; ++i) {
      const int column = begin + i * kRound;
#pragma unroll
      for (int m = 0; m < COUNT; ++m) {
        load_four(values[i][m], x + static_cast<long long>(m) * k, column, k);
      }
      load_four(weights[i], norm, column, k);
    }
  }

  // After `load(first_column())`. A barrier must follow; `staged` has the products then, as StagedRows<LANE_COLUMNS>
  // reads them.
  template <int LANE_COLUMNS, int WARP_COUNT>
  __device__ __forceinline__ void stage(RowSquares<COUNT, WARP_COUNT>& squares, float* staged) {
    const int stride = StagedRows<LANE_COLUMNS>::stride(k);
    float sums[COUNT] = {};
    int begin = first_column();
    stage_rounds<LANE_COLUMNS>(sums, staged, stride, begin);
    if constexpr (MORE) {
#pragma unroll 1
      for (begin += ROUNDS * kRound; begin < stride; begin += ROUNDS * kRound) {
        load(begin);
        stage_rounds<LANE_COLUMNS>(sums, staged, stride, begin);
      }
    }
    squares.leave(sums);
  }

 private:
  template <typename U>
  static __device__ __forceinline__ void load_four(Words<U, 4>& to, const U* row, int column, int end) {
    if constexpr (ALIGNED) {
      to.clear();
      if (column < end) {
        to.load_here(row + column);
      }
    } else {
      to.load_some(row, column, end);
    }
  }

  template <int LANE_COLUMNS>
  __device__ __forceinline__ void stage_rounds(float (&sums)[COUNT], float* staged, int stride, int begin) const {
#pragma unroll
    for (int i = 0; i < ROUNDS; ++i) {
      const int column = begin + i * kRound;
      const int place = StagedRows<LANE_COLUMNS>::place(column);
#pragma unroll
      for (int m = 0; m < COUNT; ++m) {
        Vector<float, 4> products;
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          const float value = values[i][m].get(Matrix<T>(x), v);
          sums[m] = fmaf(value, value, sums[m]);
          products.element[v] = value * weights[i].get(Matrix<float>(norm), v);
        }
        if (column < stride) {
          store_vector(staged + m * stride + place, products);
        }
      }
    }
  }
};

// Copies COUNT rows of k floats that other blocks hand on into shared memory, by all THREADS threads of the block, to
// be read by StagedRows<LANE_COLUMNS>. A barrier must follow. ALIGNED: k is a multiple of 4.
template <int COUNT, bool ALIGNED, int THREADS, int LANE_COLUMNS>
__device__ __forceinline__ void stage_rows(float* staged, const Awaited* rows, int k) {
  constexpr int kAtOnce = 4;  // of a thread's rounds
  const int stride = StagedRows<LANE_COLUMNS>::stride(k);
#pragma unroll
  for (int m = 0; m < COUNT; ++m) {
    const Awaited* const row = rows + static_cast<long long>(m) * k;
#pragma unroll 1
    for (int begin = static_cast<int>(threadIdx.x) * 4; begin < stride; begin += kAtOnce * 4 * THREADS) {
      float values[kAtOnce][4];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        look_at_floats<ALIGNED>(values[i], row, begin + i * 4 * THREADS, k);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int column = begin + i * 4 * THREADS;
        wait_for_floats<ALIGNED>(values[i], row, column, k);
        store_floats<true>(staged + m * stride, StagedRows<LANE_COLUMNS>::place(column), stride, values[i]);
      }
    }
  }
}

// Waits for COUNT rows of k floats that other blocks hand on, by all THREADS threads of the block; behind a barrier
// they may be read as any floats. ALIGNED: k is a multiple of 4.
template <int COUNT, bool ALIGNED, int THREADS>
__device__ __forceinline__ void wait_for_rows(const Awaited* rows, int k) {
  for (int m = 0; m < COUNT; ++m) {
    for (int column = static_cast<int>(threadIdx.x) * 4; column < k; column += 4 * THREADS) {
      float values[4] = {};
      wait_for_floats<ALIGNED>(values, rows + static_cast<long long>(m) * k, column, k);
    }
  }
}
