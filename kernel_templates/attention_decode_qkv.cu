// One token of a model from the projection of its queries, keys and values to the result of attention, in one launch:
// what qk_norm_rope and attention_decode do one after the other. With NORM RMSNorm of each query and key head (EPSILON
// billionths added to the mean of squares, its own weight each), interleaved rotary embedding of both (M-RoPE), the key
// and value into row `length` - 1 of the cache, then out[HEADS, HEAD_DIM] = softmax(q · Kᵀ / sqrt(HEAD_DIM)) · V over
// its first `length` rows; sums in float32. Query head h reads key head h / (HEADS / KV_HEADS). `length` lies in device
// memory: a captured launch serves a growing context. It is held to 0 … KEYS; 0 gives zeros and changes no row.
//
// qkv: HEADS query heads, KV_HEADS key heads, KV_HEADS value heads of HEAD_DIM each, STORAGE. k_cache and v_cache
// [KEYS, KV_HEADS, HEAD_DIM], CACHE. positions[3]: T, H and W of the token; cosine and sine [POSITIONS, HEAD_DIM / 2];
// positions behind the tables take their last row. How slots turn and what an int8 cache holds: qk_norm_rope.cu. The
// token's own key and value count as they are, before they are rounded for the cache.
// With int8 as OUTPUT, out is rounded for a product with a quantized weight: scales[HEADS·HEAD_DIM / 32] receives the
// scales; HEAD_DIM is then a multiple of 32.
// FLOPs: 4·HEADS·HEAD_DIM·length. Bytes: 2·length·KV_HEADS·HEAD_DIM · sizeof(CACHE) and the scales, each key and value
// once; qkv.
// Requires: pointers aligned to 16 bytes; outputs overlap nothing else. With splits > 1: `partials` of
// splits·HEADS·(HEAD_DIM + 2) floats, and `counters` of one int a key head, zero before the first launch (each launch
// leaves them zero).
// Launch: grid (KV_HEADS, splits), splits at most 128, block 32·WARPS.
//
// Every block normalises and turns the query heads that it serves, a head a warp, while the first keys and values are
// on their way: less work than another launch. Its key head's new row, too, which the block of the context's last range
// takes in and stores.

#include "common/decode_attention.cuh"
#include "common/head_rotation.cuh"
#include "common/types.cuh"

#ifndef WARPS
#define WARPS 8  // warps of a block
#endif
#ifndef BLOCKS_PER_SM
#define BLOCKS_PER_SM 2  // blocks for each SM, among which the context is dealt out: sizes the grid
#endif
#ifndef KEY_LANES
#define KEY_LANES 16  // lanes of a warp that share a key
#endif
#ifndef BATCH
#define BATCH 2  // keys a lane reads at a time
#endif
#ifndef REDUCE_PTX
#define REDUCE_PTX 0  // 1: reductions over lanes as inline PTX
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2  // resident blocks an SM asked of the compiler
#endif
#ifndef HEAD_SIZE
#define HEAD_SIZE 128  // HEAD_DIM
#endif
#ifndef HEADS_PER_KEY
#define HEADS_PER_KEY 2  // HEADS / KV_HEADS
#endif
#ifndef VECTOR
#define VECTOR 4  // elements of k and v a load takes: 16 bytes where a lane has so many
#endif
#ifndef NORMED
#define NORMED 1  // 1: query and key heads are normalised first
#endif
#ifndef EPSILON_NANO
#define EPSILON_NANO 1000  // billionths that are added to the mean of squares
#endif
#ifndef STORAGE
#define STORAGE float32  // element type of qkv
#endif
#ifndef OUTPUT
#define OUTPUT float32  // element type of out
#endif
#ifndef CACHE
#define CACHE float32  // element type of the caches
#endif

namespace {

struct Constants {
  static constexpr int kWarps = WARPS;
  static constexpr int kLanes = KEY_LANES;
  static constexpr int kBatch = BATCH;
  static constexpr bool kPtx = REDUCE_PTX != 0;
  static constexpr int kHeadSize = HEAD_SIZE;
  static constexpr int kGroup = HEADS_PER_KEY;
  static constexpr int kVector = VECTOR;
  static constexpr bool kAligned = true;
  static constexpr bool kNewest = true;
  using Cache = CACHE;
  using Output = OUTPUT;
};
using Attention = DecodeAttention<Constants>;

static_assert(BLOCKS_PER_SM >= 1, "sizes the grid");

constexpr int kGroup = Attention::kGroup;
constexpr int kHeadSize = Attention::kHeadSize;
constexpr bool kScaled = Attention::kScaled;
constexpr int kHalf = kHeadSize / 2;
constexpr int kSlots = kHalf < 32 ? 1 : kHalf / 32;  // of a lane
constexpr bool kNormed = NORMED != 0;
constexpr float kEpsilon = static_cast<float>(EPSILON_NANO / 1e9);
using Pairs = RotaryPart<kHalf, 32 * kSlots, kSlots>;

// The heads of a block in shared memory, as floats: its queries, the new key and the new value.
struct NewHeads {
  alignas(16) float rows[kGroup + 2][kHeadSize];

  __device__ __forceinline__ const float* key() const { return rows[kGroup]; }
  __device__ __forceinline__ const float* value() const { return rows[kGroup + 1]; }
};

// A warp's work on the heads: those of number `warp`, `warp` + WARPS, … of the block's kGroup queries, key and value.
struct HeadWork {
  const STORAGE* __restrict__ qkv;  // of the block's first query head
  int key_offset;                   // from there to its key head
  int value_offset;                 // to its value head
  int first = static_cast<int>(threadIdx.x) % 32 * kSlots;

  __device__ __forceinline__ void load(Pairs& pairs, int head) const {
    const int offset = head < kGroup ? head * kHeadSize : head == kGroup ? key_offset : value_offset;
    pairs.load<true>(qkv + offset, first, head < kGroup + 2 ? kHalf : 0);
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
  __device__ __forceinline__ void store_row(const Pairs& pairs, CACHE* row, float* scale) const {
    if constexpr (kScaled) {
      Pairs integers = pairs;
      const float of_head = scale_of<32>(pairs);
      divide(integers, of_head);
      if (first == 0) {
        *scale = of_head;
      }
      integers.store<true>(row, first, kHalf);
    } else {
      pairs.store<true>(row, first, kHalf);
    }
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(Attention::kThreads, MIN_BLOCKS)
    attention_decode_qkv(const STORAGE* __restrict__ qkv, const float* __restrict__ q_weight,
                         const float* __restrict__ k_weight, const float* __restrict__ cosine,
                         const float* __restrict__ sine, const int* __restrict__ positions,
                         const int* __restrict__ length, CACHE* __restrict__ k_cache, CACHE* __restrict__ v_cache,
                         float* __restrict__ k_scales, float* __restrict__ v_scales, OUTPUT* __restrict__ out,
                         float* __restrict__ scales, float* partials, int* counters, int keys, int position_count,
                         int section_h, int section_w) {
  __shared__ __align__(16) Attention::Workplace work;
  __shared__ NewHeads heads;
  const int kv_head = static_cast<int>(blockIdx.x);
  const int kv_heads = static_cast<int>(gridDim.x);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  // Read before it is known whether there is anything to do, so that latencies become one: compilers move loads behind
  // an exit, where they would wait for the length first.
  const int key_offset = (kv_heads * kGroup + kv_head - kv_head * kGroup) * kHeadSize;
  const HeadWork head_work{qkv + kv_head * kGroup * kHeadSize, key_offset, key_offset + kv_heads * kHeadSize};
  Pairs pairs;
  head_work.load(pairs, warp);
  Pairs weights = {};
  if constexpr (kNormed) {
    head_work.load_weights(weights, q_weight, k_weight, warp);
  }
  // Volatile, which keeps this order: compilers put the loads of positions behind all that the length is taken for.
  const volatile int* const at = positions;
  const int at_t = at[0];
  const int at_h = at[1];
  const int at_w = at[2];
  const int rows = *const_cast<const volatile int*>(length);
  const HeadPosition position{clamp_row(at_t, position_count), clamp_row(at_h, position_count),
                              clamp_row(at_w, position_count)};
  const int context = max(0, min(rows, keys));
  const Attention::Range range(context > 0 ? context - 1 : 0);  // without the new row
  const int kv_width = kv_heads * kHeadSize;
  Attention::Walk walk(k_cache + kv_head * kHeadSize, v_cache + kv_head * kHeadSize, k_scales, v_scales, kv_width,
                       range.begin);
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
    if (head != warp) {
      head_work.load(pairs, head);
      if constexpr (kNormed) {
        head_work.load_weights(weights, q_weight, k_weight, head);
      }
    }
    if (head <= kGroup) {
      if constexpr (kNormed) {
        const float squares = warp_reduce<Sum, Attention::kPtx>(sum_of_squares(pairs));
        const float factor = rsqrtf(squares / static_cast<float>(kHeadSize) + kEpsilon);
        normalise(pairs, weights, factor);
      }
      pairs.rotate(turn);
    }
    if (takes_new_row && head == kGroup) {
      head_work.store_row(pairs, k_cache + new_row * kHeadSize, k_scales + new_row);
    } else if (takes_new_row && head == kGroup + 1) {
      head_work.store_row(pairs, v_cache + new_row * kHeadSize, v_scales + new_row);
    }
    pairs.store<true>(heads.rows[head], head_work.first, kHalf);
  }
  __syncthreads();

  float query[kGroup][Attention::kPart];
  const int column = static_cast<int>(threadIdx.x) % Attention::kLanes * Attention::kVector;
  const float scale = kLog2E / sqrtf(static_cast<float>(kHeadSize));
#pragma unroll
  for (int h = 0; h < kGroup; ++h) {
#pragma unroll
    for (int i = 0; i < Attention::kPart; ++i) {
      query[h][i] = heads.rows[h][column + Attention::column_of(i)] * scale;
    }
  }
  Attention::attend_range(work, query, walk, range.begin, range.end, takes_new_row ? heads.key() : nullptr,
                          heads.value());
  Attention::finish(work, out, scales, partials, counters, range.count);
}
