// out[QUERIES, HEADS, HEAD_DIM] = softmax(Q · Kᵀ / sqrt(HEAD_DIM) + mask) · V for each head, in one pass, sums in
// float32. Query head h reads key head h / (HEADS / KV_HEADS).
//
// Layouts: row i of q begins at i·Q_STRIDE, rows of k and v at i·KV_STRIDE; a row holds its heads one after the other.
// out is packed. Elements: STORAGE for q and out, CACHE for k and v. With int8 as CACHE, a key is k times its head's
// scale in k_scales[KEYS, KV_HEADS], a value v times that in v_scales; for other types both are left out.
// Mask: with CAUSAL, query i sees keys 0 … KEYS-QUERIES+i. With SEGMENTS > 1, query i sees the keys of its own segment,
// rows segment_starts[s] … segment_starts[s+1]-1. Queries that see nothing give zeros.
// FLOPs: 4·HEADS·HEAD_DIM for each pair that the mask lets through. Bytes: q, out, and k and v with their scales, once.
// Requires: q, k, v and out aligned to 16 bytes; segment_starts ascending from 0 to QUERIES; CAUSAL or SEGMENTS > 1,
// not both; KEYS == QUERIES if SEGMENTS > 1. Where gridDim.z > 1: `partials` of BLOCK_Q·(D + 2) floats a block, D
// being HEAD_DIM rounded up to whole lanes (kRowV), and `counters` of one int for each x and y of the grid, zero before
// the first launch (each launch leaves them zero). Launch: grid (HEADS, ceil(QUERIES / BLOCK_Q) + SEGMENTS - 1,
// splits), block BLOCK_Q / THREAD_Q · ROW_LANES. Later tiles, longest under a causal mask, come first.
//
// A tile that sees many keys is cut into ranges of about KEYS_PER_SPLIT, a block each and up to gridDim.z; the block
// that arrives last combines what they give in the order of the ranges.

#include "common/prefill_attention.cuh"
#include "common/segment_tile.cuh"
#include "common/types.cuh"

namespace {

struct Constants {
  static constexpr int kBlockQ = BLOCK_Q;
  static constexpr int kBlockK = BLOCK_K;
  static constexpr int kThreadQ = THREAD_Q;
  static constexpr int kLanes = ROW_LANES;
  static constexpr int kSliceD = SLICE_D;
  static constexpr int kSliceK = SLICE_K;
  static constexpr int kVector = VECTOR;
  static constexpr bool kPtx = REDUCE_PTX != 0;
  static constexpr int kHeadSize = HEAD_SIZE;
  static constexpr bool kQAligned = Q_ALIGNED != 0;
  static constexpr bool kKvAligned = KV_ALIGNED != 0;
  using Storage = STORAGE;
  using Cache = CACHE;
};
using Attention = PrefillAttention<Constants>;

constexpr int kBlockQ = BLOCK_Q;
constexpr int kBlockK = BLOCK_K;
constexpr int kThreadQ = THREAD_Q;
constexpr int kThreadK = Attention::kThreadK;
constexpr int kThreadD = Attention::kThreadD;
constexpr int kHeadSize = HEAD_SIZE;

static_assert(!(kCausalMask && kSegmented), "segments have no causal mask");

// The queries of a block, and the keys it looks at.
struct Work {
  int first_row;
  int last_row;  // one past the last
  int first_key;
  int last_key;        // one past the last
  int diagonal;        // with a causal mask, query i sees keys up to i + diagonal
  int splits;          // blocks that share the queries; this one has nothing to do if it is not among them
  int last_key_there;  // of the cache, or of the segment

  __device__ __forceinline__ void prepare_first() const {}
  __device__ __forceinline__ void prepare(int /*key*/) const {}
  template <typename Matrix>
  __device__ __forceinline__ void move(Matrix& slice, int key) const {
    slice.move_to(key);
  }
  // As those of Slice, rows beyond the cache read the last one.
  __device__ __forceinline__ void load_scales(Attention::TileScales& scales, int key) const {
    scales.load([&](int index) {
      const int wanted = key + index;
      return wanted < last_key_there ? wanted : last_key_there;
    });
  }

  // Strikes out the scores of keys that a query does not see.
  __device__ __forceinline__ void mask(float (&scores)[kThreadQ][kThreadK], Attention::Place place, int key) const {
    const int seen_by_all = kCausalMask ? first_row + diagonal + 1 : last_key;
    if (key + kBlockK <= seen_by_all && key + kBlockK <= last_key) {
      return;
    }
#pragma unroll
    for (int i = 0; i < kThreadQ; ++i) {
      int end = last_key;
      if constexpr (kCausalMask) {
        const int seen = first_row + place.row_of(i) + diagonal + 1;
        end = seen < end ? seen : end;
      }
#pragma unroll
      for (int j = 0; j < kThreadK; ++j) {
        scores[i][j] = key + place.key_of(j) < end ? scores[i][j] : no_score();
      }
    }
  }
};

// What any of the queries of this block's tile sees.
__device__ __forceinline__ Work find_tile(const int* __restrict__ starts, int segments, int queries, int keys) {
  const int tile = static_cast<int>(gridDim.y - 1 - blockIdx.y);
  if constexpr (kSegmented) {
    const SegmentTile found = find_segment_tile<kBlockQ>(tile, starts, segments);
    return Work{found.first, found.end, found.begin, found.end, 0, found.first < found.end ? 1 : 0, found.end - 1};
  }
  Work work{tile * kBlockQ, queries, 0, keys, keys - queries, 1, keys - 1};
  if constexpr (kCausalMask) {
    const int seen = work.diagonal + work.first_row + kBlockQ;
    work.last_key = seen < keys ? seen : keys;
  }
  return work;
}

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(Attention::kThreads, MIN_BLOCKS)
    attention_prefill(const STORAGE* __restrict__ q, const CACHE* __restrict__ k, const CACHE* __restrict__ v,
                      const float* __restrict__ k_scales, const float* __restrict__ v_scales,
                      const int* __restrict__ segment_starts, STORAGE* __restrict__ out, float* partials, int* counters,
                      int heads, int kv_heads, int queries, int keys, int segments, int q_stride, int kv_stride) {
  __shared__ __align__(16) Attention::States states;
  Work work = find_tile(segment_starts, segments, queries, keys);
  if constexpr (kKeysPerSplit > 0) {
    Attention::take_range<kKeysPerSplit>(work.first_key, work.last_key, work.splits);
  }
  if (static_cast<int>(blockIdx.z) >= work.splits) {
    return;
  }
  const int head = static_cast<int>(blockIdx.x);
  const int kv_head = head / (heads / kv_heads);
  const int scale = Attention::kScaled ? kv_head : 0;
  Attention::run<kKeysPerSplit>(
      states,
      {q + head * kHeadSize, k + kv_head * kHeadSize, v + kv_head * kHeadSize, k_scales + scale, v_scales + scale,
       out + head * kHeadSize, partials, counters, q_stride, kv_stride, kv_heads, heads * kHeadSize},
      work, work.last_row, work.last_key_there, work.splits);
}

#else

#include "common/attention_reference.cuh"

// The same in float64. Launch: grid (QUERIES, HEADS), block kReferenceThreads.
extern "C" __global__ void attention_prefill_reference(const STORAGE* __restrict__ q, const CACHE* __restrict__ k,
                                                       const CACHE* __restrict__ v, const float* __restrict__ k_scales,
                                                       const float* __restrict__ v_scales,
                                                       const int* __restrict__ segment_starts, double* __restrict__ out,
                                                       float* partials, int* counters, int heads, int kv_heads,
                                                       int queries, int keys, int segments, int q_stride,
                                                       int kv_stride) {
  const int row = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  int first = 0;
  int last = keys;
  if (CAUSAL_MASK != 0) {
    last = keys - queries + row + 1;
  }
  for (int segment = 0; SEGMENTED != 0 && segment < segments; ++segment) {
    if (segment_starts[segment] <= row && row < segment_starts[segment + 1]) {
      first = segment_starts[segment];
      last = segment_starts[segment + 1];
    }
  }
  const int kv_head = head / (heads / kv_heads);
  const int kv_first = kv_head * kHeadSize;
  attention_row_reference<kHeadSize>(q + static_cast<long long>(row) * q_stride + head * kHeadSize,
                                     ReferenceRows<CACHE>{k + kv_first, kv_stride, k_scales, kv_head, kv_heads},
                                     ReferenceRows<CACHE>{v + kv_first, kv_stride, v_scales, kv_head, kv_heads}, first,
                                     last - first, out + (static_cast<long long>(row) * heads + head) * kHeadSize);
}

#endif
