#pragma once

// Products of slices in shared memory, from fragments in registers: what a thread needs of one depth.

#include "vector.cuh"

// Reads a thread's values of one shared row into fragment[FIRST…]: COUNT floats in chunks CHUNK wide, STRIDE apart;
// value i of a chunk lies at i ^ SWAPPED_BY.
template <int CHUNK, int STRIDE, int SWAPPED_BY, int FIRST, int COUNT, int ALL>
__device__ __forceinline__ void load_fragment(float (&fragment)[ALL], const float* shared) {
  static_assert(COUNT % CHUNK == 0, "whole chunks");
#pragma unroll
  for (int c = 0; c < COUNT / CHUNK; ++c) {
    const auto chunk = load_vector<CHUNK>(shared + c * STRIDE);
#pragma unroll
    for (int i = 0; i < CHUNK; ++i) {
      fragment[FIRST + c * CHUNK + (i ^ SWAPPED_BY)] = chunk.element[i];
    }
  }
}
template <int CHUNK, int STRIDE, int COUNT>
__device__ __forceinline__ void load_fragment(float (&fragment)[COUNT], const float* shared) {
  load_fragment<CHUNK, STRIDE, 0, 0, COUNT>(fragment, shared);
}

// The orders that a depth's M x N multiply-adds may have; which registers the compiler takes depends on it. 0: along
// rows. 1: along rows, 2: along columns, both to and fro and from the second value on: each line begins with the value
// that the last one ended with, and that lies in another register bank than the value of the line itself.
template <int ORDERING, int M, int N>
struct Walk {
  static constexpr bool kColumns = ORDERING == 2;
  static constexpr int kLine = kColumns ? M : N;
  static __device__ __forceinline__ constexpr int line(int step) { return step / kLine; }
  static __device__ __forceinline__ constexpr int along(int step) {
    const int place = step % kLine;
    return ORDERING == 0 ? place : ((step / kLine % 2 == 0 ? place : kLine - 1 - place) + 1) % kLine;
  }
  static __device__ __forceinline__ constexpr int row(int step) { return kColumns ? along(step) : line(step); }
  static __device__ __forceinline__ constexpr int column(int step) { return kColumns ? line(step) : along(step); }
};

// Where a thread's values of the next depth begin in shared memory; `tail`: where the last columns of the right side
// do.
struct Sides {
  const float* left;
  const float* right;
  const float* tail = nullptr;
};

// A thread's part of a product: M rows of the left side in chunks M_STRIDE apart, N columns of the right side in chunks
// N_STRIDE apart. Rows of shared memory, a depth each, are LEFT_ROW and RIGHT_ROW floats long. ORDERING is Walk's. In
// chunks of the right side, column j lies at j ^ N_SWAP. The last TAIL columns are in chunks of TAIL_CHUNK, TAIL_STRIDE
// apart, from Sides::tail on.
template <int M, int M_CHUNK, int M_STRIDE, int LEFT_ROW, int N, int N_CHUNK, int N_STRIDE, int RIGHT_ROW, int ORDERING,
          int N_SWAP = 0, int TAIL = 0, int TAIL_CHUNK = 1, int TAIL_STRIDE = 1>
struct Product {
  struct Fragment {
    float a[M];
    float b[N];

    __device__ __forceinline__ void load(Sides sides, int depth) {
      load_fragment<M_CHUNK, M_STRIDE>(a, sides.left + depth * LEFT_ROW);
      load_fragment<N_CHUNK, N_STRIDE, N_SWAP, 0, N - TAIL>(b, sides.right + depth * RIGHT_ROW);
      if constexpr (TAIL > 0) {
        load_fragment<TAIL_CHUNK, TAIL_STRIDE, 0, N - TAIL, TAIL>(b, sides.tail + depth * RIGHT_ROW);
      }
    }
    __device__ __forceinline__ void multiply(float (&sum)[M][N]) const {
      using Order = Walk<ORDERING, M, N>;
#pragma unroll
      for (int step = 0; step < M * N; ++step) {
        sum[Order::row(step)][Order::column(step)] += a[Order::row(step)] * b[Order::column(step)];
      }
    }
  };
  Fragment fragments[2];

  __device__ __forceinline__ void begin(Sides sides) { fragments[0].load(sides, 0); }

  // sum += left · right over the DEPTH rows of a slice, whose first depth has been loaded. A depth is loaded while that
  // before is multiplied. Before the last one is, `publish` brings the next slice, of which the first depth is loaded
  // if there is `more` of this product: its latency does not show behind the barrier either.
  template <int DEPTH, typename Publish>
  __device__ __forceinline__ void multiply(float (&sum)[M][N], Sides sides, bool more, Publish publish) {
    constexpr int kSteps = DEPTH < 8 ? DEPTH : 8;  // unrolled: more would not fit the instruction cache
    static_assert(DEPTH % kSteps == 0 && kSteps % 2 == 0, "whole steps of two fragments");
#pragma unroll 1
    for (int depth = 0; depth < DEPTH; depth += kSteps) {
#pragma unroll
      for (int i = 0; i < kSteps; ++i) {
        Fragment& next = fragments[(i + 1) % 2];
        if (i + 1 < kSteps || depth + kSteps < DEPTH) {
          next.load(sides, depth + i + 1);
        } else {
          const Sides following = publish();
          if (more) {
            next.load(following, 0);
          }
        }
        fragments[i % 2].multiply(sum);
      }
    }
  }
};
