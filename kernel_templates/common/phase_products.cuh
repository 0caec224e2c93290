#pragma once

// Products with a weight as phases of a launch (common/tickets.cuh): of plain elements (common/row_share.cuh), or in a
// packed format (common/packed_share.cuh), where the rows are rounded to int8 as the kernel `quantize` does it. What
// mlp, attention_projected and attention_layer share.
//
// `C` as for RowShare or PackedShare, with kPacked, which tells which of both, and kL2Ahead. For plain elements
// kStaged: rows that are multiplied lie in shared memory, into which `memory` points, with kEarlyRounds and kMoreRounds
// as for RowColumns. For packed formats the sums lie in it, too: from the byte kSumsAt on in two places of kSumBytes.

#include "awaited.cuh"
#include "l2_prefetch.cuh"
#include "normed_rows.cuh"
#include "packed_share.cuh"
#include "row_share.cuh"
#include "row_squares.cuh"
#include "types.cuh"

// A share of packed products whose sums lie in the block's memory.
template <typename C, typename T>
struct PackedSums : PackedShare<C, T> {
  using Share = PackedShare<C, T>;
  static_assert(Share::kSumBytes <= C::kSumBytes, "the sums of an item have a place");

  __device__ __forceinline__ PackedSums(const typename C::Weight* weight, int n, int k, char* memory, const T* rows,
                                        const float* norm)
      : Share(reinterpret_cast<const unsigned char*>(weight), n, k, memory, rows, norm) {}

  __device__ __forceinline__ float* sums(int turn) const {
    return reinterpret_cast<float*>(this->segment.memory + C::kSumsAt + turn * C::kSumBytes);
  }
  __device__ __forceinline__ void multiply(int turn, int item) { Share::multiply(sums(turn), item); }
  __device__ __forceinline__ float total(int turn, int index) const { return Share::total(sums(turn), index); }
};

// Rows of T times a norm's weights, times a weight of n rows of k columns. C::kEpsilon is added to means of squares.
template <typename C, typename T, bool PACKED = C::kPacked>
struct NormedProduct {
  using Share = typename EarlyShare<C>::Type;
  using Sums = typename Share::Sums;  // in static shared memory
  using Squares = RowSquares<C::kM, C::kWarps>;

  Share share;
  RowColumns<C::kM, 32 * C::kWarps, C::kEarlyRounds, C::kMoreRounds, C::kRowsAligned, T> columns;
  Sums& sums;
  Squares& squares;
  float* staged;

  __device__ __forceinline__ NormedProduct(const typename C::Weight* weight, int n, int k, char* memory, Sums& of_items,
                                           Squares& of_rows, const T* rows, const float* norm)
      : share(weight, n, k),
        columns{rows, norm, k},
        sums(of_items),
        squares(of_rows),
        staged(reinterpret_cast<float*>(memory)) {}

  // The first rows of the weight begin their way to the L2.
  __device__ __forceinline__ void ask_ahead() const {}
  // While the block draws its first item; a barrier must follow.
  __device__ __forceinline__ void prepare() {
    if constexpr (C::kStaged) {
      columns.load(columns.first_column());
    }
  }
  __device__ __forceinline__ void begin(int item) { share.begin(item); }
  __device__ __forceinline__ void receive() {
    if constexpr (C::kStaged) {
      columns.template stage<C::kVector>(squares, staged);
    } else {
      square_rows<C::kRowsAligned, 32 * C::kWarps>(squares, columns.x, columns.k);
    }
    __syncthreads();
  }
  __device__ __forceinline__ void multiply(int turn, int /*item*/) {
    if constexpr (C::kStaged) {
      share.multiply(sums, turn, StagedRows<C::kVector>(staged, share.k));
    } else {
      share.multiply(sums, turn, NormedRows<T>{columns.x, columns.norm, columns.k});
    }
  }
  // What sums of a row are multiplied by, and a sum before that.
  __device__ __forceinline__ float factor(int m) const { return squares.factor(m, share.k, C::kEpsilon); }
  __device__ __forceinline__ float total(int turn, int index) const { return sums.total(turn, index); }
};

template <typename C, typename T>
struct NormedProduct<C, T, true> {
  using Share = PackedSums<C, T>;
  struct Sums {};
  using Squares = RowSquares<C::kM, C::kWarps>;

  Share share;
  Squares& squares;
  const unsigned char* weight;
  int n;
  int k;
  bool passed = false;       // the rows have passed by once
  float only_factor = 0.0f;  // of the row, if it is the only one

  __device__ __forceinline__ NormedProduct(const typename C::Weight* matrix, int row_count, int columns, char* memory,
                                           Sums& /*of_items*/, Squares& of_rows, const T* rows, const float* norm)
      : share(matrix, row_count, columns, memory, rows, norm),
        squares(of_rows),
        weight(reinterpret_cast<const unsigned char*>(matrix)),
        n(row_count),
        k(columns) {}

  __device__ __forceinline__ void ask_ahead() const {
    if constexpr (C::kL2Ahead) {
      const int first_rows = static_cast<int>(gridDim.x) * Share::kItemRows;
      bring_to_l2(weight, packed_bytes_of_rows<typename C::Weight>(first_rows < n ? first_rows : n, k));
    }
  }
  __device__ __forceinline__ void prepare() { passed = share.prepare(squares); }
  __device__ __forceinline__ void begin(int item) { share.begin(item); }
  __device__ __forceinline__ void receive() {
    if (C::kM == 1 && passed) {
      only_factor = squares.factor(0, k, C::kEpsilon);
    }
  }
  __device__ __forceinline__ void multiply(int turn, int item) {
    share.multiply(turn, item);
    if (!passed) {
      share.activations.leave_squares(squares);
      passed = true;
      if constexpr (C::kM == 1) {
        __syncthreads();
        only_factor = squares.factor(0, k, C::kEpsilon);
      }
    }
  }
  __device__ __forceinline__ float factor(int m) const {
    return C::kM == 1 ? only_factor : squares.factor(m, k, C::kEpsilon);
  }
  __device__ __forceinline__ float total(int turn, int index) const { return share.total(turn, index); }
};

// Rows that other blocks hand on, times a weight of n rows of k columns.
template <typename C, bool PACKED = C::kPacked>
struct HandedProduct {
  using Share = typename EarlyShare<C>::Type;
  using Sums = typename Share::Sums;

  Share share;
  Sums& sums;
  float* staged;
  const Awaited* rows;

  __device__ __forceinline__ HandedProduct(const typename C::Weight* weight, int n, int k, char* memory, Sums& of_items,
                                           const Awaited* handed)
      : share(weight, n, k), sums(of_items), staged(reinterpret_cast<float*>(memory)), rows(handed) {}

  __device__ __forceinline__ void begin(int item) { share.begin(item); }
  __device__ __forceinline__ void receive() const {
    if constexpr (C::kStaged) {
      stage_rows<C::kM, C::kRowsAligned, 32 * C::kWarps, C::kVector>(staged, rows, share.k);
    } else {
      wait_for_rows<C::kM, C::kRowsAligned, 32 * C::kWarps>(rows, share.k);
    }
    __syncthreads();
  }
  __device__ __forceinline__ void multiply(int turn, int /*item*/) {
    if constexpr (C::kStaged) {
      share.multiply(sums, turn, StagedRows<C::kVector>(staged, share.k));
    } else {
      share.multiply(sums, turn, PlainRows<float>{&rows->value, C::kM > 1 ? share.k : 0, 0});
    }
  }
  __device__ __forceinline__ float total(int turn, int index) const { return sums.total(turn, index); }
};

template <typename C>
struct HandedProduct<C, true> : PackedSums<C, Awaited> {
  using Share = PackedSums<C, Awaited>;
  struct Sums {};

  __device__ __forceinline__ HandedProduct(const typename C::Weight* weight, int n, int k, char* memory,
                                           Sums& /*of_items*/, const Awaited* handed)
      : Share(weight, n, k, memory, handed, nullptr) {}

  __device__ __forceinline__ void receive() const {}  // each segment waits for its columns
};

// The last phase: what HandedProduct gives, added to x. `wait(order)` waits until most of the rows have come.
template <typename C, typename T, typename Wait>
struct ResidualPhase {
  using Product = HandedProduct<C>;
  static constexpr int kItemRows = Product::Share::kItemRows;
  static constexpr int kItemSums = Product::Share::kItemSums;
  static constexpr int kThreads = 32 * C::kWarps;

  Product product;
  Wait wait;
  const T* x;
  T* c;
  int n;
  float residual = 0.0f;  // of the thread's first sum of the item, read before that is known

  __device__ __forceinline__ bool exists(int item, int sum) const {
    return sum < kItemSums && item * kItemRows + sum / C::kM < n;
  }
  __device__ __forceinline__ long long place(int item, int sum) const {
    return static_cast<long long>(sum % C::kM) * n + (item * kItemRows + sum / C::kM);
  }
  __device__ __forceinline__ void begin(int item) { product.begin(item); }
  template <typename Order>
  __device__ __forceinline__ void receive(const Order& order) const {
    wait(order);
    product.receive();
  }
  __device__ __forceinline__ void work(int item, int turn) {
    const int sum = static_cast<int>(threadIdx.x);
    residual = exists(item, sum) ? to_float(x[place(item, sum)]) : 0.0f;
    product.multiply(turn, item);
  }
  __device__ __forceinline__ void finish(int item, int turn) const {
    for (int sum = static_cast<int>(threadIdx.x); exists(item, sum); sum += kThreads) {
      const float before = kItemSums <= kThreads || sum < kThreads ? residual : to_float(x[place(item, sum)]);
      c[place(item, sum)] = from_float<T>(before + product.total(turn, sum));
      if constexpr (kItemSums <= kThreads) {
        break;
      }
    }
  }
};
