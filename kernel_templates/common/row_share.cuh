#pragma once

// A block's work on a weight of plain elements: items of some of its rows, of which the first loads are on their way
// before the rows are there that they are multiplied by (common/row_products.cuh). What mlp and matvec_normed share.

#include "matrix.cuh"
#include "reduce.cuh"
#include "row_products.cuh"
#include "words.cuh"

// Loads of kUnroll for each row, like those of RowProducts<C>, that stay where the program has them and are not waited
// for before they are multiplied. kRowsAligned; with C::kWholeSteps, kUnroll loads of all lanes divide the columns.
template <typename C>
struct WordLoads {
  using Products = RowProducts<C>;
  using Weight = typename C::Weight;

  Words<Weight, C::kVector> words[C::kUnroll][C::kRows];

  // Without kWholeSteps, those at or behind the end are zeros.
  __device__ __forceinline__ void load(const Weight* const (&rows)[C::kRows], int k, int end) {
    if (C::kWholeSteps && k >= end) {
      return;
    }
#pragma unroll
    for (int u = 0; u < C::kUnroll; ++u) {
#pragma unroll
      for (int r = 0; r < C::kRows; ++r) {
        if (!C::kWholeSteps && k + u * Products::kStep >= end) {
          words[u][r].clear();
        } else {
          words[u][r].load_here(rows[r] + k + u * Products::kStep);
        }
      }
    }
  }

  template <typename A>
  __device__ __forceinline__ void multiply(float (&sums)[Products::kPadded], const Matrix<Weight>& b, const A& a, int k,
                                           int end) const {
#pragma unroll
    for (int u = 0; u < C::kUnroll; ++u) {
#pragma unroll
      for (int i = 0; i < C::kM; ++i) {
        float values[C::kVector];
        a.template load<true, C::kWholeSteps>(values, i, k + u * Products::kStep, end);
#pragma unroll
        for (int r = 0; r < C::kRows; ++r) {
#pragma unroll
          for (int v = 0; v < C::kVector; ++v) {
            sums[i * C::kRows + r] += values[v] * words[u][r].get(b, v);
          }
        }
      }
    }
  }
};

// `C` as for RowProducts, with kWarps of the block, kSteady for loads that are on their way while those before are
// multiplied, and kReducePtx. `L`: how loads are held. WHOLE: kUnroll loads of all lanes divide the columns.
template <typename C, typename L = typename RowProducts<C>::template Loads<C::kUnroll, true>, bool WHOLE = false>
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
  L loads;

  __device__ __forceinline__ RowShare(const Weight* weight, int row_count, int columns)
      : matrix(weight), n(row_count), k(columns) {}

  static __device__ __forceinline__ int warp_row() { return static_cast<int>(threadIdx.x) / 32 / C::kWarpsK * kRows; }

  // The first weights of an item begin their way.
  __device__ __forceinline__ void begin(int item) {
    Products::point(rows, matrix, item * kItemRows + warp_row(), n, k);
    const int column = Products::first_column(0);
    loads.load(rows, column, WHOLE ? column + 1 : k);
  }

  // Leaves the sums of the item that was begun last, times the rows of `a`.
  template <typename A>
  __device__ __forceinline__ void multiply(Sums& to, int turn, const A& a) {
    float sums[Products::kPadded] = {};
    add_products<false>(sums, a, -1);
    leave(to, turn, sums);
  }

  // Adds up a lane's part of the sums of the item that was begun last, times the rows of `a`. CONTINUES: the item
  // `next` begins as soon as there is room for its first loads, if it is not negative.
  template <bool CONTINUES, typename A>
  __device__ __forceinline__ void add_products(float (&sums)[Products::kPadded], const A& a,
                                               [[maybe_unused]] int next) {
    constexpr int kAll = C::kUnroll * Products::kStep;
    if constexpr (WHOLE) {  // whose rows have one step at least
      int column = Products::first_column(0);
#pragma unroll 1
      do {
        step<CONTINUES>(sums, a, column, next);
        column += kAll;
      } while (column < k);
    } else {
#pragma unroll 1
      for (int column = Products::first_column(0); column < k; column += kAll) {
        step<CONTINUES>(sums, a, column, next);
      }
    }
    if constexpr (CONTINUES && !C::kSteady) {
      if (next >= 0) {
        begin(next);
      }
    }
  }

  // Leaves an item's sums; all lanes of the warp must take part.
  __device__ __forceinline__ void leave(Sums& to, int turn, float (&sums)[Products::kPadded]) const {
    constexpr int kPadded = Products::kPadded;
    const float sum = warp_reduce_many<Sum, C::kReducePtx, kPadded>(sums);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int index = lane / (32 / kPadded);  // of the sum that this lane ends up with
    if (lane % (32 / kPadded) == 0 && index < Products::kSums) {
      const int warp_k = static_cast<int>(threadIdx.x) / 32 % C::kWarpsK;
      to.part[turn][warp_k][(warp_row() + index % kRows) * kM + index / kRows] = sum;
    }
  }

 private:
  // Multiplies what was loaded of the columns at `column`, and loads what comes after that.
  template <bool CONTINUES, typename A>
  __device__ __forceinline__ void step(float (&sums)[Products::kPadded], const A& a, int column,
                                       [[maybe_unused]] int next) {
    constexpr int kAll = C::kUnroll * Products::kStep;
    if constexpr (C::kSteady) {
      const auto now = loads;
      if (!CONTINUES || column + kAll < k) {
        loads.load(rows, column + kAll, k);
      } else if (next >= 0) {
        begin(next);
      }
      now.multiply(sums, matrix, a, column, k);
    } else {
      loads.multiply(sums, matrix, a, column, k);
      loads.load(rows, column + kAll, k);
    }
  }
};

// The RowShare whose loads nothing waits for before they are multiplied, where rows are aligned for that.
template <typename C, bool ALIGNED = C::kRowsAligned>
struct EarlyShare {
  using Type = RowShare<C>;
};
template <typename C>
struct EarlyShare<C, true> {
  using Type = RowShare<C, WordLoads<C>, C::kWholeSteps>;
};
