// What lies between the projection of queries, keys and values and the attention over a cache, in one pass: with NORM
// RMSNorm of each query and key head (EPSILON billionths added to the mean of squares, its own weight each),
// interleaved rotary embedding of both (M-RoPE), and keys and values into the cache.
//
// qkv[TOKENS, QKV_STRIDE]: a row is HEADS query heads, KV_HEADS key heads, KV_HEADS value heads of HEAD_DIM each.
// With QKV_PARTS it is matrices one after another, dense, each of some of these heads of all tokens: queries, then keys
// and values (1); queries and keys, then values (2); queries, keys, values (3).
// q[TOKENS, HEADS, HEAD_DIM]; k_cache and v_cache [CACHE_ROWS, KV_HEADS, HEAD_DIM]: token t goes to row slots[t]; a
// slot that is no row of the cache is skipped. positions[3, TOKENS]: T, H and W of each token; cosine and sine
// [POSITIONS, HEAD_DIM / 2]; positions behind the tables take their last row.
// With int8 as CACHE, a key or value head x becomes its scale, max |x| / 127 in k_scales or v_scales[CACHE_ROWS,
// KV_HEADS], 0 if that is below the least normal float32, and the integers next to x / scale, ties to even; of a head
// that is not finite the scale is not either. For other types both are left out.
// Slot j of a head is the pair of elements j and j + HEAD_DIM / 2. It turns by position H if j % 3 == 1 and
// j < 3 · SECTION_H, by W if j % 3 == 2 and j < 3 · SECTION_W, else by T.
//
// Bytes: qkv read, q and a row of both caches and of their scales written for each token; the tables' rows for each
// token.
// Requires: pointers aligned to 16 bytes; HEAD_DIM even; no slot twice; outputs overlap nothing else.
// Launch: grid ceil(TOKENS · ceil((HEADS + 2 · KV_HEADS) / HEADS_PER_GROUP) / (BLOCK_THREADS / LANES_PER_HEAD)),
// block BLOCK_THREADS.
//
// A group of LANES_PER_HEAD threads takes HEADS_PER_GROUP neighbouring heads of one token, and reads cosines and sines
// once for all of them. A thread holds both elements of its pairs, so that only the sum of squares is exchanged, and
// the largest magnitude for an int8 cache. Without NORM the weights are left out, and nothing is summed up.

#include "common/head_rotation.cuh"

namespace {

constexpr bool kScaled = sizeof(CACHE) == 1;
constexpr bool kQueriesApart = QKV_PARTS % 2 == 1;
constexpr bool kValuesApart = QKV_PARTS / 2 == 1;

constexpr int kHalf = kHeadSize / 2;
constexpr int kStep = kLanesPerHead * kVector;  // slots a head's threads take at a time
constexpr float kEpsilon = static_cast<float>(EPSILON_NANO / 1e9);

static_assert(kBlockThreads % 32 == 0 && kBlockThreads <= 1024, "a block is whole warps");
static_assert((kLanesPerHead & (kLanesPerHead - 1)) == 0 && kLanesPerHead <= 32, "a head stays in a warp");
static_assert(kHeadSize % 2 == 0, "elements are rotated in pairs");
static_assert(QKV_PARTS >= 0 && QKV_PARTS <= 3, "there is no other way to take heads apart");

using Pairs = RotaryPart<kHalf, kStep, kVector>;
constexpr int kChunks = Pairs::kChunks;

// Where a token's head begins.
__device__ __forceinline__ const STORAGE* begin_of_head(const STORAGE* qkv, int token, int head, int tokens, int heads,
                                                        int kv_heads, int qkv_stride) {
  if constexpr (!kQueriesApart && !kValuesApart) {
    return qkv + static_cast<long long>(token) * qkv_stride + head * kHeadSize;
  } else {
    const int values = heads + kv_heads;
    int first = 0;  // heads of the matrix that has it
    int last = values + kv_heads;
    if constexpr (kValuesApart) {
      first = head < values ? first : values;
      last = head < values ? values : last;
    }
    if constexpr (kQueriesApart) {
      last = head < heads ? heads : last;
      first = head < heads || first > heads ? first : heads;
    }
    const long long before = static_cast<long long>(tokens) * first + static_cast<long long>(token) * (last - first);
    return qkv + (before + head - first) * kHeadSize;
  }
}

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kBlockThreads, kMinBlocks)
    qk_norm_rope(const STORAGE* __restrict__ qkv, const float* __restrict__ q_weight,
                 const float* __restrict__ k_weight, const float* __restrict__ cosine, const float* __restrict__ sine,
                 const int* __restrict__ positions, const int* __restrict__ slots, CACHE* __restrict__ k_cache,
                 CACHE* __restrict__ v_cache, float* __restrict__ k_scales, float* __restrict__ v_scales,
                 STORAGE* __restrict__ q, int tokens, int heads, int kv_heads, int qkv_stride, int position_count,
                 int cache_rows, int section_h, int section_w) {
  const int all_heads = heads + 2 * kv_heads;
  const int groups_per_token = (all_heads + kHeadsPerGroup - 1) / kHeadsPerGroup;
  const int group =
      static_cast<int>(blockIdx.x) * (kBlockThreads / kLanesPerHead) + static_cast<int>(threadIdx.x) / kLanesPerHead;
  const int first = static_cast<int>(threadIdx.x) % kLanesPerHead * kVector;
  const bool exists = group / groups_per_token < tokens;  // groups behind the last take part in the exchange
  const int token = exists ? group / groups_per_token : 0;
  const int first_head = group % groups_per_token * kHeadsPerGroup;

  Pairs pairs[kHeadsPerGroup];
#pragma unroll
  for (int i = 0; i < kHeadsPerGroup; ++i) {
    pairs[i].load<kRowsAligned>(begin_of_head(qkv, token, first_head + i, tokens, heads, kv_heads, qkv_stride), first,
                                exists && first_head + i < all_heads ? kHalf : 0);
  }
  const int slot = slots[token];
  Pairs turn = {};
  if (first_head < heads + kv_heads) {
    const HeadPosition position{clamp_row(positions[token], position_count),
                                clamp_row(positions[tokens + token], position_count),
                                clamp_row(positions[2 * tokens + token], position_count)};
    load_rotation<kRowsAligned>(turn, cosine, sine, position, first, section_h, section_w);
  }
  [[maybe_unused]] float squares[kHeadsPerGroup];
  if constexpr (kNormed) {
#pragma unroll
    for (int i = 0; i < kHeadsPerGroup; ++i) {
      squares[i] = warp_reduce<Sum, kReducePtx, kLanesPerHead>(sum_of_squares(pairs[i]));
    }
  }

  const bool cached = slot >= 0 && slot < cache_rows;
  const long long cache_row = static_cast<long long>(slot) * kv_heads;
  const auto norm_and_rotate = [&](int i) {
    if constexpr (kNormed) {
      const float factor = rsqrtf(squares[i] / static_cast<float>(kHeadSize) + kEpsilon);
      Pairs weights;
      weights.load<kRowsAligned>(first_head + i < heads ? q_weight : k_weight, first, kHalf);
      normalise(pairs[i], weights, factor);
    }
    pairs[i].rotate(turn);
  };
  [[maybe_unused]] float scales[kHeadsPerGroup];
  if constexpr (kScaled) {  // before anything returns: all lanes take part in the exchange
#pragma unroll
    for (int i = 0; i < kHeadsPerGroup; ++i) {
      if (first_head + i < heads + kv_heads) {
        norm_and_rotate(i);
      }
      scales[i] = scale_of<kLanesPerHead>(pairs[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kHeadsPerGroup; ++i) {
    const int head = first_head + i;
    if (!exists || head >= all_heads) {
      return;
    }
    const bool is_value = head >= heads + kv_heads;
    if (!kScaled && !is_value) {
      norm_and_rotate(i);
    }
    if (head < heads) {
      pairs[i].store<kRowsAligned>(q + (static_cast<long long>(token) * heads + head) * kHeadSize, first, kHalf);
    } else if (cached) {
      const long long k_row = cache_row + head - heads;
      const long long v_row = k_row - kv_heads;
      if constexpr (kScaled) {
        divide(pairs[i], scales[i]);
        if (first == 0) {
          *(is_value ? v_scales + v_row : k_scales + k_row) = scales[i];
        }
      }
      // Whole addresses to choose from: with a chosen base the compiler writes element by element.
      pairs[i].store<kRowsAligned>(is_value ? v_cache + v_row * kHeadSize : k_cache + k_row * kHeadSize, first, kHalf);
    }
  }
}

#else

#include "common/head_reference.cuh"

// The same in float64, one thread a head.
// Launch: grid ceil(TOKENS · (HEADS + 2 · KV_HEADS) / 64), block 64.
extern "C" __global__ void qk_norm_rope_reference(const STORAGE* __restrict__ qkv, const float* __restrict__ q_weight,
                                                  const float* __restrict__ k_weight, const float* __restrict__ cosine,
                                                  const float* __restrict__ sine, const int* __restrict__ positions,
                                                  const int* __restrict__ slots, double* __restrict__ k_cache,
                                                  double* __restrict__ v_cache, double* __restrict__ k_scales,
                                                  double* __restrict__ v_scales, double* __restrict__ q, int tokens,
                                                  int heads, int kv_heads, int qkv_stride, int position_count,
                                                  int cache_rows, int section_h, int section_w) {
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int token = index / (heads + 2 * kv_heads);
  const int head = index % (heads + 2 * kv_heads);
  const bool cached = token < tokens && slots[token] >= 0 && slots[token] < cache_rows;
  if (token >= tokens || (head >= heads && !cached)) {
    return;
  }
  const STORAGE* in = begin_of_head(qkv, token, head, tokens, heads, kv_heads, qkv_stride);
  const long long k_row = static_cast<long long>(slots[token]) * kv_heads + head - heads;
  const long long v_row = k_row - kv_heads;
  if (head >= heads + kv_heads) {
    for (int i = 0; i < kHeadSize; ++i) {
      v_cache[v_row * kHeadSize + i] = to_float(in[i]);
    }
    if (kScaled) {
      divide_by_scale_reference<kHeadSize>(v_cache + v_row * kHeadSize, v_scales + v_row);
    }
    return;
  }
  double* out =
      head < heads ? q + (static_cast<long long>(token) * heads + head) * kHeadSize : k_cache + k_row * kHeadSize;
  const float* weight = head < heads ? q_weight : k_weight;
  const RotationReference rotation{cosine,         sine,      positions + token, tokens,
                                   position_count, section_h, section_w,         EPSILON_NANO / 1e9};
  rotation.apply<kHeadSize>(in, out, kNormed ? weight : nullptr);
  if (kScaled && head >= heads) {
    divide_by_scale_reference<kHeadSize>(out, k_scales + k_row);
  }
}

#endif
