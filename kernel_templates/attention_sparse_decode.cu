// out[HEADS, HEAD_DIM] = softmax(q · Kᵀ / sqrt(HEAD_DIM) + mask) · V for one query a head over the first `length` rows
// of a cache of KEYS rows, with a block-sparse mask; sums in float32. Query head h reads key head h / (HEADS /
// KV_HEADS). `length` lies in device memory: a captured launch serves a growing context. It is held to 0 … KEYS; 0
// gives zeros. Rows that the mask leaves out are not read.
//
// Layouts: q and out are packed, k and v [KEYS, KV_HEADS, HEAD_DIM]. Elements: STORAGE for q, OUTPUT for out, CACHE for
// k and v. With int8 as CACHE, a key is k times its head's scale in k_scales[KEYS, KV_HEADS], a value v times that in
// v_scales; for other types both are left out. With int8 as OUTPUT, out is rounded for a product with a quantized
// weight: scales[HEADS·HEAD_DIM / 32] receives the scales; HEAD_DIM is then a multiple of 32.
// Mask: the query is at position p = length - 1 and sees keys j ≤ p of the following.
//   LISTS = 0: those with p - j < WINDOW, those with j < SINKS, and, with STRIDE > 0, those in blocks j / BLOCK that
//   are multiples of STRIDE. LISTS = 1 or KV_HEADS: those in blocks that blocks[LISTS, WIDTH] names, for all heads or
//   for its key head. Lists ascend; one ends before its first entry that is negative or lies behind the query. Without
//   entries: zeros.
// FLOPs: 4·HEADS·HEAD_DIM for each key that counts. Bytes: 2·KV_HEADS·HEAD_DIM · sizeof(CACHE) and the scales for each.
// Requires: pointers aligned to 16 bytes; BLOCK a power of two from 16 to 128; with STRIDE, SINKS a multiple of BLOCK.
// With splits > 1: `partials` of splits·HEADS·(HEAD_DIM + 2) floats, and `counters` of one int a key head, zero before
// the first launch (each launch leaves them zero).
// Launch: grid (KV_HEADS, splits), splits at most 128, block 32·WARPS.
//
// As attention_decode, over the keys that count, by their numbers: each split takes a range of those.

#include "common/decode_attention.cuh"
#include "common/sparse_keys.cuh"
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
  static constexpr bool kNewest = false;
  using Cache = CACHE;
  using Output = OUTPUT;
};
using Attention = DecodeAttention<Constants>;
using Keys = SparseKeys<LISTED != 0>;

static_assert(BLOCKS_PER_SM >= 1, "sizes the grid");

constexpr int kHeadSize = HEAD_SIZE;
// A lane's way through the keys that count: the batch of keys and values that it has under way. Rows of the values are
// those of the keys that were loaded before.
struct SparseWalk {
  using Part = Attention::Part;
  static constexpr int kBatch = Attention::kBatch;

  Keys seen;
  const CACHE* k;  // of the lane's columns, in row 0
  const CACHE* v;
  const float* k_scale;  // of row 0
  const float* v_scale;
  int rows_there;
  int key;  // the lane's first
  int rows[kBatch] = {};
  Part keys[kBatch] = {};
  Part values[kBatch] = {};

  __device__ __forceinline__ SparseWalk(const Keys& of, const CACHE* __restrict__ k_head,
                                        const CACHE* __restrict__ v_head, const float* __restrict__ k_scales,
                                        const float* __restrict__ v_scales, int there, int begin)
      : seen(of), k_scale(k_scales), v_scale(v_scales), rows_there(there) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    key = begin + static_cast<int>(threadIdx.x) / 32 * Attention::kKeysPerWarp + lane / Attention::kLanes;
    k = k_head + lane % Attention::kLanes * Attention::kVector;
    v = v_head + lane % Attention::kLanes * Attention::kVector;
    if constexpr (Attention::kScaled) {
      k_scale += blockIdx.x;
      v_scale += blockIdx.x;
    }
  }
  __device__ __forceinline__ void load(Part (&parts)[kBatch], const CACHE* __restrict__ of,
                                       const float* __restrict__ scale, int end) const {
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      if (key + b * Attention::kKeysPerStep < end) {
        const int heads = static_cast<int>(gridDim.x);
        parts[b].load(of + static_cast<long long>(rows[b]) * (heads * kHeadSize));
        if constexpr (Attention::kScaled) {
          parts[b].scale = scale[static_cast<long long>(rows[b]) * heads];
        }
      }
    }
  }
  __device__ __forceinline__ void load_keys(int end) {
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      if (key + b * Attention::kKeysPerStep < end) {
        rows[b] = seen.row_of(key + b * Attention::kKeysPerStep, rows_there);
      }
    }
    load(keys, k, k_scale, end);
  }
  __device__ __forceinline__ void load_values(int end) { load(values, v, v_scale, end); }
  __device__ __forceinline__ void advance() { key += Attention::kChunk; }
};

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(Attention::kThreads, MIN_BLOCKS)
    attention_sparse_decode(const STORAGE* __restrict__ q, const CACHE* __restrict__ k, const CACHE* __restrict__ v,
                            const float* __restrict__ k_scales, const float* __restrict__ v_scales,
                            const int* __restrict__ length, const int* __restrict__ blocks, OUTPUT* __restrict__ out,
                            float* __restrict__ scales, float* partials, int* counters, int keys, int window, int sinks,
                            int stride, int block_log2, int lists, int width) {
  __shared__ __align__(16) Attention::Workplace work;
  const AttentionShare share = AttentionShare::of_block();
  const int kv_head = share.kv_head;
  // Read before it is known whether there is anything to do, so that latencies become one.
  float query[Attention::kGroup][Attention::kPart];
  Attention::load_queries(query, q + kv_head * Attention::kGroup * kHeadSize);
  const int rows = *length < 0 ? 0 : *length < keys ? *length : keys;
  const int* list = LISTED != 0 ? blocks + static_cast<long long>(lists > 1 ? kv_head : 0) * width : nullptr;
  Keys seen({window, sinks, stride, block_log2, width}, list, rows - 1, rows - 1);
  seen.count = rows > 0 ? seen.count : 0;
  const Attention::Range range(seen.count, share);
  if (!range.exists()) {
    return;
  }
  SparseWalk walk(seen, k + kv_head * kHeadSize, v + kv_head * kHeadSize, k_scales, v_scales, keys, range.begin);
  walk.load_keys(range.end);
  walk.load_values(range.end);
  Attention::attend_range(work, query, walk, range.begin, range.end, nullptr, nullptr);
  Attention::finish(work, share, out, scales, partials, counters, range.count);
}

#else

#include "common/sparse_reference.cuh"

// The same in float64. Launch: grid HEADS, block kReferenceThreads.
extern "C" __global__ void attention_sparse_decode_reference(
    const STORAGE* __restrict__ q, const CACHE* __restrict__ k, const CACHE* __restrict__ v,
    const float* __restrict__ k_scales, const float* __restrict__ v_scales, const int* __restrict__ length,
    const int* __restrict__ blocks, double* __restrict__ out, double* __restrict__ scales, float* partials,
    int* counters, int keys, int window, int sinks, int stride, int block_log2, int lists, int width) {
  const int head = static_cast<int>(blockIdx.x);
  const int kv_head = head / HEADS_PER_KEY;
  const int kv_heads = static_cast<int>(gridDim.x) / HEADS_PER_KEY;
  const int context = *length < keys ? *length : keys;
  const SparseSight sight{{window, sinks, stride, block_log2, width},
                          lists > 0 ? blocks + static_cast<long long>(lists > 1 ? kv_head : 0) * width : nullptr,
                          context - 1};
  attention_row_reference<HEAD_SIZE>(
      q + head * HEAD_SIZE,
      ReferenceRows<CACHE>{k + kv_head * HEAD_SIZE, kv_heads * HEAD_SIZE, k_scales, kv_head, kv_heads},
      ReferenceRows<CACHE>{v + kv_head * HEAD_SIZE, kv_heads * HEAD_SIZE, v_scales, kv_head, kv_heads}, 0, context,
      out + head * HEAD_SIZE, sight);
  __syncthreads();
  if (threadIdx.x < 32) {
    scale_reference<OUTPUT>(out + head * HEAD_SIZE, scales + head * (HEAD_SIZE / 32), 0, 1, HEAD_SIZE, false);
  }
}

#endif
