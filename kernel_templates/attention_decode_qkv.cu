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
// What a block does is in common/token_attention.cuh.

#include "common/token_attention.cuh"
#include "common/types.cuh"

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
  static constexpr bool kNormed = NORMED != 0;
  static constexpr float kEpsilon = static_cast<float>(EPSILON_NANO / 1e9);
  using Storage = STORAGE;
  using Cache = CACHE;
  using Output = OUTPUT;
};
using Token = TokenAttention<Constants>;

static_assert(BLOCKS_PER_SM >= 1, "sizes the grid");

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(Token::kThreads, MIN_BLOCKS)
    attention_decode_qkv(const STORAGE* __restrict__ qkv, const float* __restrict__ q_weight,
                         const float* __restrict__ k_weight, const float* __restrict__ cosine,
                         const float* __restrict__ sine, const int* __restrict__ positions,
                         const int* __restrict__ length, CACHE* __restrict__ k_cache, CACHE* __restrict__ v_cache,
                         float* __restrict__ k_scales, float* __restrict__ v_scales, OUTPUT* __restrict__ out,
                         float* __restrict__ scales, float* partials, int* counters, int keys, int position_count,
                         int section_h, int section_w) {
  __shared__ __align__(16) Token::Attention::Workplace work;
  __shared__ Token::NewHeads heads;
  const Token token{qkv,      q_weight, k_weight,       cosine,    sine,     positions, length,
                    k_cache,  v_cache,  k_scales,       v_scales,  out,      scales,    partials,
                    counters, keys,     position_count, section_h, section_w};
  token.attend(work, heads, AttentionShare::of_block(), token.load_position());
}

#else

#include "common/token_reference.cuh"

// The same in float64. Launch: grid KV_HEADS, block kReferenceThreads.
extern "C" __global__ void attention_decode_qkv_reference(const STORAGE* qkv, const float* q_weight,
                                                          const float* k_weight, const float* cosine, const float* sine,
                                                          const int* positions, const int* length, double* k_cache,
                                                          double* v_cache, double* k_scales, double* v_scales,
                                                          double* out, double* scales, float* partials, int* counters,
                                                          int keys, int position_count, int section_h, int section_w) {
  const TokenReference<HEAD_SIZE, HEADS_PER_KEY> token{
      {cosine, sine, positions, 1, position_count, section_h, section_w, EPSILON_NANO / 1e9},
      q_weight,
      k_weight,
      length,
      k_cache,
      v_cache,
      k_scales,
      v_scales,
      static_cast<int>(gridDim.x),
      keys};
  const int kv_head = static_cast<int>(blockIdx.x);
  token.attend(qkv, kv_head, out);
  for (int head = kv_head * HEADS_PER_KEY; threadIdx.x < 32 && head < (kv_head + 1) * HEADS_PER_KEY; ++head) {
    scale_reference<OUTPUT>(out + head * HEAD_SIZE, scales + head * (HEAD_SIZE / 32), 0, 1, HEAD_SIZE, false);
  }
}

#endif
