#pragma once

// One token of a model from the projection of its queries, keys and values to the result of attention: what a block of
// attention_decode_qkv does, and what one of attention_projected does for each of its shares.
//
// A block normalises and turns the query heads that it serves, a head a warp, while the first keys and values are on
// their way: less work than another launch. Its key head's new row, too, which the block of the context's last range
// takes in and stores.

#include "awaited.cuh"
#include "decode_attention.cuh"
#include "head_rotation.cuh"
#include "ordered_ranges.cuh"
#include "types.cuh"

// The token's positions, and how many rows of the cache count with its own.
struct TokenPosition {
  int t;
  int h;
  int w;
  int length;
};

// `C` as for DecodeAttention, with kNewest, kNormed, kEpsilon and the type Storage of qkv; where that is Awaited, a
// block waits for its heads, its first keys and values being on their way.
template <typename C>
struct TokenAttention {
  using Attention = DecodeAttention<C>;
  using Storage = typename C::Storage;
  using Cache = typename C::Cache;
  using Output = typename C::Output;
  static constexpr int kThreads = Attention::kThreads;
  static constexpr int kGroup = Attention::kGroup;
  static constexpr int kHeadSize = Attention::kHeadSize;
  static constexpr bool kScaled = Attention::kScaled;
  static constexpr int kHalf = kHeadSize / 2;
  static constexpr int kSlots = kHalf <= 32 ? 1 : kHalf <= 64 ? 2 : 4;  // of a lane
  static constexpr bool kNormed = C::kNormed;
  using Pairs = RotaryPart<kHalf, 32 * kSlots, kSlots>;

  // Arguments of the kernel, as attention_decode_qkv.cu says.
  const Storage* qkv;
  const float* q_weight;
  const float* k_weight;
  const float* cosine;
  const float* sine;
  const int* positions;
  const int* length;
  Cache* k_cache;
  Cache* v_cache;
  float* k_scales;
  float* v_scales;
  Output* out;
  float* scales;
  float* partials;
  int* counters;
  int keys;
  int position_count;
  int section_h;
  int section_w;

  // The heads of a block in shared memory, as floats: its queries, the new key and the new value.
  struct NewHeads {
    alignas(16) float rows[kGroup + 2][kHeadSize];

    __device__ __forceinline__ const float* key() const { return rows[kGroup]; }
    __device__ __forceinline__ const float* value() const { return rows[kGroup + 1]; }
  };

  // A warp's work on the heads: those of number `warp`, `warp` + WARPS, … of the block's kGroup queries, key and value.
  struct HeadWork {
    const Storage* __restrict__ qkv;  // of the block's first query head
    int key_offset;                   // from there to its key head
    int value_offset;                 // to its value head
    int first = static_cast<int>(threadIdx.x) % 32 * kSlots;

    __device__ __forceinline__ void load(Pairs& pairs, int head) const {
      const int offset = head < kGroup ? head * kHeadSize : head == kGroup ? key_offset : value_offset;
      const int end = head < kGroup + 2 ? kHalf : 0;
      if constexpr (kIsAwaited<Storage>) {
        pairs = {};
        while (first < end && !(have_come(pairs.low[0]) && have_come(pairs.high[0]))) {
          look_at(pairs.low[0], qkv + offset + first);
          look_at(pairs.high[0], qkv + offset + kHalf + first);
        }
      } else {
        pairs.template load<true>(qkv + offset, first, end);
      }
    }

    __device__ __forceinline__ void load_weights(Pairs& weights, const float* __restrict__ q_weight,
                                                 const float* __restrict__ k_weight, int head) const {
      if (head <= kGroup && first < kHalf) {
        const float* weight = (head < kGroup ? q_weight : k_weight) + first;
        const auto low = load_here<kSlots>(weight);
        const auto high = load_here<kSlots>(weight + kHalf);
#pragma unroll
        for (int v = 0; v < kSlots; ++v) {
          weights.low[0][v] = low.element[v];
          weights.high[0][v] = high.element[v];
        }
      }
    }

    // The lanes beyond a head's slots hold zeros, and store nothing.
    __device__ __forceinline__ void store_row(const Pairs& pairs, Cache* row, float* scale) const {
      if constexpr (kScaled) {
        Pairs integers = pairs;
        const float of_head = scale_of<32>(pairs);
        divide(integers, of_head);
        if (first == 0) {
          *scale = of_head;
        }
        integers.template store<true>(row, first, kHalf);
      } else {
        pairs.template store<true>(row, first, kHalf);
      }
    }
  };

  // Volatile, which keeps its order among other such loads: compilers put loads of positions behind all that the length
  // is taken for.
  __device__ __forceinline__ TokenPosition load_position() const {
    const volatile int* const at = positions;
    return {at[0], at[1], at[2], *const_cast<const volatile int*>(length)};
  }

  __device__ __forceinline__ int context_of(const TokenPosition& at) const { return max(0, min(at.length, keys)); }

  // The ranges of the context, without the new row.
  __device__ __forceinline__ typename Attention::Ranges ranges_of(const TokenPosition& at, int splits) const {
    const int context = context_of(at);
    return {context > 0 ? context - 1 : 0, splits};
  }

  // The block's share; the results of a key head are stored by the block that comes last, or where they are Awaited and
  // shares were drawn in their order, by that of the last range. `known`: the ranges, if they are. All threads must
  // take part, and a barrier lie between two shares.
  __device__ __forceinline__ void attend(typename Attention::Workplace& work, NewHeads& heads,
                                         const AttentionShare& share, const TokenPosition& at,
                                         const typename Attention::Ranges* known = nullptr) const {
    const int kv_head = share.kv_head;
    const int kv_heads = share.kv_heads;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    // Read before it is known whether there is anything to do, so that latencies become one: compilers move loads
    // behind an exit, where they would wait for the length first.
    const int key_offset = (kv_heads * kGroup + kv_head - kv_head * kGroup) * kHeadSize;
    const HeadWork head_work{qkv + kv_head * kGroup * kHeadSize, key_offset, key_offset + kv_heads * kHeadSize};
    Pairs pairs;
    if constexpr (!kIsAwaited<Storage>) {
      head_work.load(pairs, warp);
    }
    Pairs weights = {};
    if constexpr (kNormed) {
      head_work.load_weights(weights, q_weight, k_weight, warp);
    }
    const HeadPosition position{clamp_row(at.t, position_count), clamp_row(at.h, position_count),
                                clamp_row(at.w, position_count)};
    const int context = context_of(at);
    const typename Attention::Range range(known != nullptr ? *known : ranges_of(at, share.splits), share.split);
    const int kv_width = kv_heads * kHeadSize;
    typename Attention::Walk walk(k_cache + kv_head * kHeadSize, v_cache + kv_head * kHeadSize, k_scales, v_scales,
                                  kv_width, range.begin, share);
    walk.load_keys(range.end);
    walk.load_values(range.end);

    const bool takes_new_row = context > 0 && range.is_last();
    const long long new_row = static_cast<long long>(context - 1) * kv_heads + kv_head;
    Pairs turn = {};
    load_rotation<true>(turn, cosine, sine, position, head_work.first, section_h, section_w);
    if (!range.exists()) {  // and so has loaded no keys
      return;
    }
    for (int head = warp; head < kGroup + 2; head += Attention::kWarps) {
      if (kIsAwaited<Storage> || head != warp) {
        head_work.load(pairs, head);
      }
      if (head != warp) {
        if constexpr (kNormed) {
          head_work.load_weights(weights, q_weight, k_weight, head);
        }
      }
      if (head <= kGroup) {
        if constexpr (kNormed) {
          const float squares = warp_reduce<Sum, Attention::kPtx>(sum_of_squares(pairs));
          const float factor = rsqrtf(squares / static_cast<float>(kHeadSize) + C::kEpsilon);
          normalise(pairs, weights, factor);
        }
        pairs.rotate(turn);
      }
      if (takes_new_row && head == kGroup) {
        head_work.store_row(pairs, k_cache + new_row * kHeadSize, k_scales + new_row);
      } else if (takes_new_row && head == kGroup + 1) {
        head_work.store_row(pairs, v_cache + new_row * kHeadSize, v_scales + new_row);
      }
      pairs.template store<true>(heads.rows[head], head_work.first, kHalf);
    }
    __syncthreads();

    float query[kGroup][Attention::kPart];
    const float scale = kLog2E / sqrtf(static_cast<float>(kHeadSize));
#pragma unroll
    for (int h = 0; h < kGroup; ++h) {
#pragma unroll
      for (int i = 0; i < Attention::kPart; ++i) {
        query[h][i] =
            Attention::in_row(i) ? heads.rows[h][Attention::first_column() + Attention::column_of(i)] * scale : 0.0f;
      }
    }
    Attention::attend_range(work, query, walk, range.begin, range.end, takes_new_row ? heads.key() : nullptr,
                            heads.value());
    if constexpr (kIsAwaited<Output>) {
      OrderedRanges<Attention>::finish(work, share, out, reinterpret_cast<Awaited*>(partials), range.count);
    } else {
      Attention::finish(work, share, out, scales, partials, counters, range.count);
    }
  }
};
