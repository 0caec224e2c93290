// out[HEADS, HEAD_DIM] = softmax(q · Kᵀ / sqrt(HEAD_DIM)) · V for one query a head over the first `length` rows of a
// cache of KEYS rows; sums in float32. Query head h reads key head h / (HEADS / KV_HEADS). `length` lies in device
// memory: a captured launch serves a growing context. It is held to 0 … KEYS; 0 gives zeros.
//
// Layouts: q and out are packed, rows of k and v begin at i·KV_STRIDE, a row holds its heads one after the other.
// Elements: STORAGE for q, OUTPUT for out, CACHE for k and v. With int8 as CACHE, a key is k times its head's scale in
// k_scales[KEYS, KV_HEADS], a value v times that in v_scales; for other types both are left out. With int8 as OUTPUT,
// out is rounded for a product with a quantized weight: scales[HEADS·HEAD_DIM / 32] receives the scales; HEAD_DIM is
// then a multiple of 32.
// FLOPs: 4·HEADS·HEAD_DIM·length. Bytes: 2·length·KV_HEADS·HEAD_DIM · sizeof(CACHE) and the scales, each key and value
// once.
// Requires: pointers aligned to 16 bytes. With splits > 1: `partials` of splits·HEADS·(HEAD_DIM + 2) floats, and
// `counters` of one int a key head, zero before the first launch (each launch leaves them zero).
// Launch: grid (KV_HEADS, splits), splits at most 128, block 32·WARPS.

#include "common/decode_attention.cuh"
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
  static constexpr bool kAligned = KV_ALIGNED != 0;
  static constexpr bool kNewest = false;
  using Cache = CACHE;
  using Output = OUTPUT;
};
using Attention = DecodeAttention<Constants>;

static_assert(BLOCKS_PER_SM >= 1, "sizes the grid");

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(Attention::kThreads, MIN_BLOCKS)
    attention_decode(const STORAGE* __restrict__ q, const CACHE* __restrict__ k, const CACHE* __restrict__ v,
                     const float* __restrict__ k_scales, const float* __restrict__ v_scales,
                     const int* __restrict__ length, OUTPUT* __restrict__ out, float* __restrict__ scales,
                     float* partials, int* counters, int keys, int kv_stride) {
  __shared__ __align__(16) Attention::Workplace work;
  const AttentionShare share = AttentionShare::of_block();
  const int kv_head = share.kv_head;
  // Read before it is known whether there is anything to do, so that latencies become one.
  float query[Attention::kGroup][Attention::kPart];
  Attention::load_queries(query, q + kv_head * Attention::kGroup * Attention::kHeadSize);
  const Attention::Range range(*length < 0 ? 0 : *length < keys ? *length : keys, share);
  if (!range.exists()) {
    return;
  }
  Attention::Walk walk(k + kv_head * Attention::kHeadSize, v + kv_head * Attention::kHeadSize, k_scales, v_scales,
                       kv_stride, range.begin, share);
  walk.load_keys(range.end);
  walk.load_values(range.end);
  Attention::attend_range(work, query, walk, range.begin, range.end, nullptr, nullptr);
  Attention::finish(work, share, out, scales, partials, counters, range.count);
}

#else

#include "common/attention_reference.cuh"

// The same in float64. Launch: grid HEADS, block kReferenceThreads.
extern "C" __global__ void attention_decode_reference(const STORAGE* __restrict__ q, const CACHE* __restrict__ k,
                                                      const CACHE* __restrict__ v, const float* __restrict__ k_scales,
                                                      const float* __restrict__ v_scales,
                                                      const int* __restrict__ length, double* __restrict__ out,
                                                      double* __restrict__ scales, float* partials, int* counters,
                                                      int keys, int kv_stride) {
  const int head = static_cast<int>(blockIdx.x);
  const int kv_first = head / HEADS_PER_KEY * HEAD_SIZE;
  const int context = *length < keys ? *length : keys;
  const int kv_heads = static_cast<int>(gridDim.x) / HEADS_PER_KEY;
  attention_row_reference<HEAD_SIZE>(
      q + head * HEAD_SIZE, ReferenceRows<CACHE>{k + kv_first, kv_stride, k_scales, head / HEADS_PER_KEY, kv_heads},
      ReferenceRows<CACHE>{v + kv_first, kv_stride, v_scales, head / HEADS_PER_KEY, kv_heads}, 0, context,
      out + head * HEAD_SIZE);
  __syncthreads();
  if (threadIdx.x < 32) {
    scale_reference<OUTPUT>(out + head * HEAD_SIZE, scales + head * (HEAD_SIZE / 32), 0, 1, HEAD_SIZE, false);
  }
}

#endif
