#pragma once

// Rows of a matrix product's left side that are normalised on their way to shared memory; the search spaces' dimension
// NORM. Statistics of the rows come from the kernel row_statistics.

#include "operand.cuh"

constexpr int kNormNone = 0;
constexpr int kNormRms = 1;    // x · factor of the row · weight of the column
constexpr int kNormLayer = 2;  // (x - mean of the row) · factor of the row · weight of the column + bias of the column
constexpr int kNormQuarters = 3;  // that of each quarter of a row, as of a row of its own

struct RowNorm {
  const float* weight;      // [depth]
  const float* bias;        // [depth], but for kNormRms
  const float* statistics;  // [rows] factors; but for kNormRms [rows] means behind them
};                          // for kNormQuarters depth and rows are those of quarters

// Operand's elements normalised. With kNormRms only the weights are multiplied on the way: a row's factor is one of all
// its products, too, and the caller's to multiply their sums by. With kNormQuarters every slice lies in one quarter.
template <int NORM, typename T, int THREADS, int BLOCK, int DEPTH, int VECTOR_SIZE, int PADDED_BY, bool ALONG_ROWS,
          bool ALIGNED>
struct NormedOperand : Operand<T, THREADS, BLOCK, DEPTH, VECTOR_SIZE, PADDED_BY, ALONG_ROWS, ALIGNED> {
  using Base = Operand<T, THREADS, BLOCK, DEPTH, VECTOR_SIZE, PADDED_BY, ALONG_ROWS, ALIGNED>;
  static_assert(NORM == kNormRms || NORM == kNormLayer || NORM == kNormQuarters, "a known norm");
  static constexpr bool kShifts = NORM != kNormRms;
  static constexpr bool kQuarters = NORM == kNormQuarters;
  // Loads of a thread that lie in the same columns, or in the same row, share what belongs to these.
  static constexpr int kColumns = ALONG_ROWS && THREADS % Base::kVectorsPerRow == 0 ? 1 : Base::kLoads;
  static constexpr int kRows = !ALONG_ROWS && THREADS % BLOCK == 0 ? 1 : Base::kLoads;

  const float* weight;
  const float* bias;
  float weights[kColumns][VECTOR_SIZE];
  float biases[kColumns][VECTOR_SIZE];
  float factors[kRows];
  float shifts[kRows];  // - mean · factor
  // With kQuarters only.
  const float* places[kRows];  // of the quarters' factors
  int means;                   // from a factor to its mean
  int quarter;                 // columns of one
  int left;                    // columns of the present one that are still to load

  __device__ __forceinline__ NormedOperand(const T* __restrict__ elements, int first_row, int rows, int first_k,
                                           int depth, RowNorm norm)
      : Base(elements, first_row, rows, first_k, depth), weight(norm.weight + first_k), bias(nullptr) {
    if constexpr (kShifts) {
      bias = norm.bias + first_k;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int row = first_row + Base::row_of(i);
        if constexpr (kQuarters) {
          places[i] = norm.statistics + 4 * (row < rows ? row : rows - 1);
        } else {
          const float* place = norm.statistics + (row < rows ? row : rows - 1);
          factors[i] = place[0];
          shifts[i] = -place[rows] * place[0];
        }
      }
    }
    if constexpr (kQuarters) {
      means = 4 * rows;
      quarter = depth / 4;
      left = quarter - first_k % quarter;
      start_quarter(first_k / quarter, -(first_k / quarter) * quarter);
    }
  }

  // Columns beyond the first slice read as zeros: the right side's elements are zeros there.
  __device__ __forceinline__ void load_first(int filled) {
    Base::load_first(filled);
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
#pragma unroll
      for (int v = 0; v < VECTOR_SIZE; ++v) {
        const int column = Base::k_of(i) + v;
        weights[i][v] = column < filled ? weight[column] : 0.0f;
        if constexpr (kShifts) {
          biases[i][v] = column < filled ? bias[column] : 0.0f;
        }
      }
    }
    advance(filled);
  }

  __device__ __forceinline__ void load_next() {
    if constexpr (kQuarters) {
      if (left == 0) {
        left = quarter;
        start_quarter(1, -quarter);
      }
    }
    Base::load_next();
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      load(weights[i], weight + Base::k_of(i));
      if constexpr (kShifts) {
        load(biases[i], bias + Base::k_of(i));
      }
    }
    advance(DEPTH);
  }

  __device__ __forceinline__ void store(float* shared, const Matrix<T>& matrix) const {
#pragma unroll
    for (int i = 0; i < Base::kLoads; ++i) {
      const int column = kColumns == 1 ? 0 : i;
      const int row = kRows == 1 ? 0 : i;
#pragma unroll
      for (int v = 0; v < VECTOR_SIZE; ++v) {
        float value = matrix(Base::staged[i], v);
        if constexpr (kShifts) {
          value = (value * factors[row] + shifts[row]) * weights[column][v] + biases[column][v];
        } else {
          value *= weights[column][v];
        }
        shared[(Base::k_of(i) + v) * Base::kRow + Base::row_of(i)] = value;
      }
    }
  }

 private:
  static __device__ __forceinline__ void load(float (&values)[VECTOR_SIZE], const float* place) {
    if constexpr (ALIGNED) {
      const auto vector = load_vector<VECTOR_SIZE>(place);
#pragma unroll
      for (int v = 0; v < VECTOR_SIZE; ++v) {
        values[v] = vector.element[v];
      }
    } else {
#pragma unroll
      for (int v = 0; v < VECTOR_SIZE; ++v) {
        values[v] = place[v];
      }
    }
  }

  // Reads the statistics of the quarter so many behind the present one; weights and biases lie `columns` further.
  __device__ __forceinline__ void start_quarter(int ahead, int columns) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      places[i] += ahead;
      factors[i] = places[i][0];
      shifts[i] = -places[i][means] * factors[i];
    }
    weight += columns;
    bias += columns;
  }

  __device__ __forceinline__ void advance(int columns) {
    if constexpr (kQuarters) {
      left -= columns;
    }
    weight += columns;
    if constexpr (kShifts) {
      bias += columns;
    }
  }
};
