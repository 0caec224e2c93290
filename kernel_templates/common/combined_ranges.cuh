#pragma once

// What the ranges of a context gave (DecodeAttention::leave_range), combined by every block that needs all of it: no
// block has to come last and read what the others wrote before anybody can go on, for which each of these blocks reads
// as many times as much as there are ranges. (The sums of "flash-decoding", Dao et al., 2023.)

#include "decode_attention.cuh"
#include "online_softmax.cuh"
#include "vector.cuh"

// `A` is the DecodeAttention; MOST, a power of two up to 32, the most ranges.
template <typename A, int MOST>
struct CombinedRanges {
  static_assert(MOST >= 1 && MOST <= 32 && (MOST & (MOST - 1)) == 0, "lanes of a warp reduce a head's states");
  using Quad = Vector<float, 4>;
  static constexpr int kAtOnce = MOST < 8 ? MOST : 8;  // ranges whose sums a thread has under way
  static constexpr int kQuads = 8 / kAtOnce;               // of a thread at a time

  const float* sums;
  const OnlineSoftmax* states;
  int heads;
  int splits;
  int count;  // ranges that there are

  // `partials` as for DecodeAttention::Partials, of `kv_heads` and `splits`.
  __device__ __forceinline__ CombinedRanges(float* partials, int kv_heads, int split_count, int range_count)
      : heads(kv_heads * A::kGroup), splits(split_count), count(range_count) {
    const typename A::Partials all(partials, {0, kv_heads, 0, split_count});
    sums = all.sums;
    states = all.states;
  }

  // Leaves the attention of all heads in `row`, HEADS·HEAD_DIM floats of shared memory; `weights` has room for
  // HEADS·MOST. All threads must take part; a barrier must follow.
  __device__ __forceinline__ void combine(float* row, float* weights) const {
    const int quads = heads * (A::kHeadSize / 4);
    Batch batch;
    batch.load(*this, static_cast<int>(threadIdx.x), 0, quads);
    weigh(weights);
    __syncthreads();
#pragma unroll 1
    for (int quad = static_cast<int>(threadIdx.x); quad < quads; quad += kQuads * A::kThreads) {
      if (quad != static_cast<int>(threadIdx.x)) {
        batch.load(*this, quad, 0, quads);
      }
      Quad total[kQuads] = {};
      batch.add(total, weights, quad, 0, quads, count);
#pragma unroll 1
      for (int first = kAtOnce; first < count; first += kAtOnce) {
        batch.load(*this, quad, first, quads);
        batch.add(total, weights, quad, first, quads, count);
      }
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        if (quad + i * A::kThreads < quads) {
          store_vector(row + (quad + i * A::kThreads) * 4, total[i]);
        }
      }
    }
  }

 private:
  // A thread's quads, kThreads apart, of some ranges.
  struct Batch {
    Quad rows[kQuads][kAtOnce];

    __device__ __forceinline__ void load(const CombinedRanges& of, int quad, int first, int quads) {
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        const int at = quad + i * A::kThreads;
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r) {
          if (at < quads && first + r < of.count) {
            rows[i][r] = load_written<4>(of.sums + static_cast<long long>(first + r) * of.heads * A::kHeadSize + at * 4);
          } else {
            rows[i][r] = Quad{};
          }
        }
      }
    }
    __device__ __forceinline__ void add(Quad (&total)[kQuads], const float* weights, int quad, int first, int quads,
                                        int count) const {
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        const int at = quad + i * A::kThreads;
        const float* of_head = weights + at * 4 / A::kHeadSize * MOST + first;
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r) {
          if (at < quads && first + r < count) {
            A::add_to(total[i], rows[i][r], of_head[r]);
          }
        }
      }
    }
  };

  // What each range's sums count with: its part of the head's softmax.
  __device__ __forceinline__ void weigh(float* weights) const {
    const int all = heads * MOST;
    for (int first = static_cast<int>(threadIdx.x) / 32 * 32; first < all; first += A::kThreads) {
      const int at = first + static_cast<int>(threadIdx.x) % 32;
      const int range = at % MOST;
      OnlineSoftmax own = OnlineSoftmax::empty();
      if (at < all && range < count) {
        const float* state = reinterpret_cast<const float*>(states + at / MOST * splits + range);
        own = {load_written<1>(state).element[0], load_written<1>(state + 1).element[0]};
      }
      const float maximum = lanes_reduce<Max, A::kPtx, MOST, 1>(own.maximum);
      const float factor = power_of_2(own.maximum - maximum);
      const OnlineSoftmax whole{maximum, lanes_reduce<Sum, A::kPtx, MOST, 1>(own.sum * factor)};
      if (at < all) {
        weights[at] = factor * whole.normaliser();
      }
    }
  }
};
