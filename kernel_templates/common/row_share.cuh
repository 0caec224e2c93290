#pragma once

// A block's work on a weight of plain elements: items of some of its rows, of which the first loads are on their way
// before the rows are there that they are multiplied by (common/row_products.cuh). What mlp and matvec_normed share.

#include "matrix.cuh"
#include "reduce.cuh"
#include "row_products.cuh"

// `C` as for RowProducts, with kWarps of the block, kPrefetch for loads that are on their way while those before are
// multiplied, and kReducePtx.
template <typename C>
struct RowShare {
  using Products = RowProducts<C>;
  using Weight = typename C::Weight;
  static constexpr int kRows = C::kRows;
  static constexpr int kM = C::kM;
  static constexpr int kWarps = C::kWarps;
  static constexpr int kItemRows = kRows * kWarps / C::kWarpsK;
  static constexpr int kItemSums = kItemRows * kM;
  static_assert(kItemSums <= 32 * kWarps, "a thread finishes one sum at most");

  // Sums of the warps that share rows: of an item and the one before it, which slower warps may still read.
  struct Sums {
    float part[2][C::kWarpsK][kItemSums];  // row of the item * kM + row of x

    __device__ __forceinline__ float total(int turn, int index) const {
      float sum = part[turn][0][index];
#pragma unroll
      for (int other = 1; other < C::kWarpsK; ++other) {
        sum += part[turn][other][index];
      }
      return sum;
    }
  };

  Matrix<Weight> matrix;
  int n;
  int k;
  const Weight* rows[kRows];
  typename Products::template Loads<C::kUnroll, true> loads;

  __device__ __forceinline__ RowShare(const Weight* weight, int row_count, int columns)
      : matrix(weight), n(row_count), k(columns) {}

  static __device__ __forceinline__ int warp_row() { return static_cast<int>(threadIdx.x) / 32 / C::kWarpsK * kRows; }

  // The first weights of an item begin their way.
  __device__ __forceinline__ void begin(int item) {
    Products::point(rows, matrix, item * kItemRows + warp_row(), n, k);
    loads.load(rows, Products::first_column(0), k);
  }

  // Leaves the sums of the item that was begun last, times the rows of `a`.
  template <typename A>
  __device__ __forceinline__ void multiply(Sums& to, int turn, const A& a) {
    constexpr int kAll = C::kUnroll * Products::kStep;
    constexpr int kPadded = Products::kPadded;
    float sums[kPadded] = {};
#pragma unroll 1
    for (int column = Products::first_column(0); column < k; column += kAll) {
      if constexpr (C::kPrefetch) {
        const auto now = loads;
        loads.load(rows, column + kAll, k);
        now.multiply(sums, matrix, a, column, k);
      } else {
        loads.multiply(sums, matrix, a, column, k);
        loads.load(rows, column + kAll, k);
      }
    }
    const float sum = warp_reduce_many<Sum, C::kReducePtx, kPadded>(sums);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int index = lane / (32 / kPadded);  // of the sum that this lane ends up with
    if (lane % (32 / kPadded) == 0 && index < Products::kSums) {
      const int warp_k = static_cast<int>(threadIdx.x) / 32 % C::kWarpsK;
      to.part[turn][warp_k][(warp_row() + index % kRows) * kM + index / kRows] = sum;
    }
  }
};
