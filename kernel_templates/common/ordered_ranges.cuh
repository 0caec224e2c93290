#pragma once

// What the blocks of a key head's ranges of the context give, joined by the block of the last range. Blocks must have
// drawn their shares in their order (common/tickets.cuh): those of the ranges before run then, or are through, and wait
// for nobody. No block counts arrivals or fences (common/awaited.cuh), which DecodeAttention::finish does.

#include "awaited.cuh"
#include "decode_attention.cuh"

// `A`: a DecodeAttention whose Output is Awaited.
template <typename A>
struct OrderedRanges {
  using Quad = typename A::Quad;
  using Workplace = typename A::Workplace;
  static constexpr int kGroup = A::kGroup;
  static constexpr int kHeadSize = A::kHeadSize;
  static constexpr int kQuads = A::kQuads;
  static constexpr int kShares = A::kShares;
  static constexpr int kThreads = A::kThreads;
  static constexpr int kAhead = 8;

  // The states of a head's ranges, of which the block has that of the last; each is taken once.
  struct States {
    Awaited* others;
    int last;
    OnlineSoftmax of_last;

    __device__ __forceinline__ OnlineSoftmax operator[](int range) const {
      if (range == last) {
        return of_last;
      }
      float words[2];
      Awaited* const from = others + 2 * range;
      wait_for(words, from);
      from[0].value = 0.0f;
      from[1].value = 0.0f;
      return {words[0], words[1]};
    }
  };

  // Some ranges' sums in one quad, for a thread that takes every kShares-th range; each is taken once.
  struct Rows {
    Quad rows[kAhead];

    // Ranges `first`, `first` + kShares, … below `count`; `sums` are those of range 0 in the quad.
    __device__ __forceinline__ void look(const Awaited* sums, long long stride, int first, int count) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (first + i * kShares < count) {
          look_at(rows[i].element, sums + (first + i * kShares) * stride);
        }
      }
    }
    __device__ __forceinline__ bool are_there(int first, int count) const {
      bool there = true;
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        there = there && (first + i * kShares >= count || have_come(rows[i].element));
      }
      return there;
    }
    __device__ __forceinline__ void take(Quad& total, const float* weights, Awaited* sums, long long stride, int first,
                                         int count) const {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (first + i * kShares < count) {
          A::add_to(total, rows[i], weights[first + i * kShares]);
          store_vector(reinterpret_cast<float*>(sums + (first + i * kShares) * stride), Quad{});
        }
      }
    }
  };

  // As DecodeAttention::finish; `partials` of splits·HEADS·(HEAD_DIM + 2) values, zero before and after.
  static __device__ __forceinline__ void finish(Workplace& work, const AttentionShare& share, Awaited* out,
                                                Awaited* partials, int ranges) {
    const int heads = share.kv_heads * kGroup;
    const long long stride = static_cast<long long>(heads) * kHeadSize;
    const int first_head = share.kv_head * kGroup;
    Awaited* const sums = partials + first_head * kHeadSize;  // [splits, HEADS, HEAD_DIM]
    Awaited* const states = partials + share.splits * stride + 2 * first_head * share.splits;  // [HEADS, splits]
    const bool is_last = share.split == ranges - 1;
    A::template join_heads<A::kWarps>(work, work.states[0], A::kWarps, A::kWarps);
    if (const int head = static_cast<int>(threadIdx.x); head < kGroup && !is_last) {
      const float words[2] = {work.whole[head].maximum, work.whole[head].sum};
      hand_on(states + 2 * (head * share.splits + share.split), words);
    }
    for (int quad = static_cast<int>(threadIdx.x); quad < kQuads; quad += kThreads) {
      const int head = quad * 4 / kHeadSize;
      Quad total{};
#pragma unroll
      for (int warp = 0; warp < A::kWarps; ++warp) {
        A::add_to(total, load_vector<4>(work.sums[warp] + quad * 4), work.weights[head][warp]);
      }
      if (is_last) {
        store_vector(work.sums[0] + quad * 4, total);
        continue;
      }
      hand_on(sums + share.split * stride + quad * 4, total.element);
    }
    if (is_last) {
      typename A::Output output(out + first_head * kHeadSize, nullptr, 0, 1, kGroup * kHeadSize);
      join(work, output, sums, stride, states, share.splits, ranges - 1);
    }
  }

 private:
  // With the ranges before, in their order; what the block's own gave lies in the workplace. The others' sums are
  // looked at before it is known what they weigh.
  static __device__ __forceinline__ void join(Workplace& work, typename A::Output& out, Awaited* sums, long long stride,
                                              Awaited* states, int splits, int others) {
    const int thread = static_cast<int>(threadIdx.x);
    const int share = thread / kQuads;
    Rows rows;
    if (share < kShares) {
      rows.look(sums + thread % kQuads * 4, stride, share, others);
    }
    __syncthreads();  // until all have read what the warps weigh: the ranges' weights take their place
    for (int h = thread / 32; h < kGroup; h += A::kWarps) {
      const States of_ranges{states + 2 * h * splits, others, work.whole[h]};
      const OnlineSoftmax whole = join_states<A::kMaxSplits, A::kPtx>(work.weights[h], of_ranges, others + 1);
      __syncwarp();  // until all lanes have read the state of the block's own range
      if (thread % 32 == 0) {
        work.whole[h] = whole;
      }
    }
    __syncthreads();
    for (int quad = thread % kQuads; quad < kQuads && share < kShares; quad += kThreads) {
      const float* const weights = work.weights[quad * 4 / kHeadSize];
      Awaited* const from = sums + quad * 4;
      Quad total{};
      if (share == 0) {
        A::add_to(total, load_vector<4>(work.sums[0] + quad * 4), weights[others]);
      }
      for (int first = share; first < others; first += kAhead * kShares) {
        if (quad >= kThreads || first != share) {
          rows.look(from, stride, first, others);
        }
        while (!rows.are_there(first, others)) {
          rows.look(from, stride, first, others);
        }
        rows.take(total, weights, from, stride, first, others);
      }
      store_vector(work.sums[share] + quad * 4, total);
    }
    __syncthreads();
    for (int quad = thread; quad < kQuads; quad += kThreads) {
      Quad total = load_vector<4>(work.sums[0] + quad * 4);
#pragma unroll
      for (int i = 1; i < kShares; ++i) {
        A::add_to(total, load_vector<4>(work.sums[i] + quad * 4), 1.0f);
      }
      A::store_out(out, work, total, quad);
    }
  }
};
