#pragma once

// Products of a few rows of activations with rows of a weight of plain elements, which are read once, straight into
// registers: a warp takes some rows, its lanes lying along the depth, with several loads of each row in flight; warps
// of a block may share the depth of the same rows. What matvec and mlp share.

#include "matrix.cuh"
#include "row.cuh"
#include "vector.cuh"

// Activations as rows of T that are `stride` apart, of which the first element is that of column `origin`.
template <typename T>
struct PlainRows {
  const T* elements;
  int stride;
  int origin;

  // N neighbouring columns of row `m`; those at or behind `end` are zeros. ALIGNED as for load_floats. INSIDE: none is.
  template <bool ALIGNED, bool INSIDE, int N>
  __device__ __forceinline__ void load(float (&values)[N], int m, int column, int end) const {
    const int at = column - origin;
    load_floats<ALIGNED>(values, elements + static_cast<long long>(m) * stride, at, INSIDE ? at + 1 : end - origin);
  }
};

__device__ constexpr int power_of_two(int least) { return least <= 1 ? 1 : 2 * power_of_two((least + 1) / 2); }

// `C` names a kernel's constants: Weight, the type of elements; kM rows of activations, kRows of the weight a warp,
// kWarpsK warps that share their depth, kVector elements a load takes, kUnroll loads of a row in flight, kRowsAligned
// for rows of a multiple of 8 elements.
template <typename C>
struct RowProducts {
  using Weight = typename C::Weight;
  static constexpr int kM = C::kM;
  static constexpr int kRows = C::kRows;
  static constexpr int kWarpsK = C::kWarpsK;
  static constexpr int kVector = C::kVector;
  static constexpr int kUnroll = C::kUnroll;
  static constexpr bool kRowsAligned = C::kRowsAligned;

  static constexpr int kSums = kM * kRows;
  static constexpr int kPadded = power_of_two(kSums);
  static constexpr int kStep = kWarpsK * 32 * kVector;  // from one load of a row to its next

  static_assert(kPadded <= 32, "a lane reduces one sum");
  static_assert(kVector == 2 || kVector == 4 || kVector == 8, "whole vectors");
  static_assert(8 % kVector == 0, "aligned rows are whole vectors");

  // The lane's first column of a depth that begins at `begin`.
  static __device__ __forceinline__ int first_column(int begin) {
    const int warp_k = static_cast<int>(threadIdx.x) / 32 % kWarpsK;
    return begin + (warp_k * 32 + static_cast<int>(threadIdx.x) % 32) * kVector;
  }

  // The rows from `first` on of a matrix of n rows of k columns; those behind the last are the last.
  static __device__ __forceinline__ void point(const Weight* (&rows)[kRows], const Matrix<Weight>& matrix, int first,
                                               int n, int k) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int row = first + r;
      rows[r] = matrix.elements + static_cast<long long>(row < n ? row : n - 1) * k;
    }
  }

  static __device__ __forceinline__ Vector<Weight, kVector> load_weights(const Weight* row, int k, int end) {
    if constexpr (kRowsAligned) {
      return load_vector<kVector>(row + k);
    } else {
      Vector<Weight, kVector> out;
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        out.element[v] = k + v < end ? row[k + v] : Weight{};
      }
      return out;
    }
  }

  // COUNT loads of each row, kStep apart. CHECKED: those at or behind the end are zeros, else there are none.
  template <int COUNT, bool CHECKED>
  struct Loads {
    Vector<Weight, kVector> weights[COUNT][kRows];

    __device__ __forceinline__ void load(const Weight* const (&rows)[kRows], int k, int end) {
#pragma unroll
      for (int u = 0; u < COUNT; ++u) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          if (!CHECKED || k + u * kStep < end) {
            weights[u][r] = load_weights(rows[r], k + u * kStep, end);
          } else {
            weights[u][r] = Vector<Weight, kVector>{};
          }
        }
      }
    }

    template <typename A>
    __device__ __forceinline__ void multiply(float (&sums)[kPadded], const Matrix<Weight>& b, const A& a, int k,
                                             int end) const {
#pragma unroll
      for (int u = 0; u < COUNT; ++u) {
#pragma unroll
        for (int i = 0; i < kM; ++i) {
          float values[kVector];
          // Where rows are aligned, no load that is not checked lies beyond the end.
          a.template load<kRowsAligned, kRowsAligned && !CHECKED>(values, i, k + u * kStep, end);
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
#pragma unroll
            for (int v = 0; v < kVector; ++v) {
              sums[i * kRows + r] += values[v] * b(weights[u][r], v);
            }
          }
        }
      }
    }
  };

  // Adds COUNT loads of each row of `b`.
  template <int COUNT, typename A>
  static __device__ __forceinline__ void add_products(float (&sums)[kPadded], const Matrix<Weight>& b,
                                                      const Weight* const (&rows)[kRows], const A& a, int k, int end) {
    Loads<COUNT, false> loads;
    loads.load(rows, k, end);
    loads.multiply(sums, b, a, k, end);
  }

  template <typename A>
  static __device__ __forceinline__ void multiply_rows(float (&sums)[kPadded], const Matrix<Weight>& b,
                                                       const Weight* const (&rows)[kRows], const A& a, int begin,
                                                       int end) {
    int k = first_column(begin);
#pragma unroll 1
    for (; k + (kUnroll - 1) * kStep < end; k += kUnroll * kStep) {
      add_products<kUnroll>(sums, b, rows, a, k, end);
    }
#pragma unroll 1
    for (; k < end; k += kStep) {
      add_products<1>(sums, b, rows, a, k, end);
    }
  }
};
