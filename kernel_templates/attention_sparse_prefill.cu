// out[QUERIES, HEADS, HEAD_DIM] = softmax(Q · Kᵀ / sqrt(HEAD_DIM) + mask) · V for each head, with a block-sparse causal
// mask; sums in float32. Query head h reads key head h / (HEADS / KV_HEADS). Work is by the keys that the mask lets
// through, in tiles that are filled whatever its blocks.
//
// Layouts: q, k, v and out are packed, a row holds its heads one after the other. Elements: STORAGE for q and out,
// CACHE for k and v. With int8 as CACHE, a key is k times its head's scale in k_scales[KEYS, KV_HEADS], a value v times
// that in v_scales; for other types both are left out. Mask: query i is at position p = KEYS-QUERIES+i and sees keys j
// ≤ p of the following.
//   LISTS = 0: those with p - j < WINDOW, those with j < SINKS, and, with STRIDE > 0, those in blocks j / BLOCK that
//   are multiples of STRIDE. Blocks matter with STRIDE alone; everything else is exact to the key. LISTS = 1 or
//   KV_HEADS: those in blocks that blocks[LISTS, ceil(QUERIES / BLOCK), WIDTH] names for its BLOCK queries, for all
//   heads or for its key head: row j / BLOCK of the cache's blocks. Lists ascend; one ends before its first entry that
//   is negative or lies behind its queries. Queries that see nothing give zeros.
// FLOPs: 4·HEADS·HEAD_DIM for each pair that the mask lets through. Bytes: q, out, and k and v with their scales, once.
// Requires: pointers aligned to 16 bytes; KEYS ≥ QUERIES; BLOCK a power of two from 16 to 128, with LISTS a multiple of
// BLOCK_Q; with STRIDE, SINKS a multiple of BLOCK. Where gridDim.z > 1: `partials` of BLOCK_Q·(D + 2) floats a
// block, D being HEAD_DIM rounded up to whole lanes (kRowV), and `counters` of one int for each x and y of the grid,
// zero before the first launch (each launch leaves them zero). Launch: grid (HEADS, ceil(QUERIES / BLOCK_Q), splits),
// block BLOCK_Q / THREAD_Q · ROW_LANES.
//
// Tiles are computed as in attention_prefill. The rows of a tile's keys lie in shared memory, where they are worked out
// a tile ahead.

#include "common/prefill_attention.cuh"
#include "common/sparse_keys.cuh"
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
  static constexpr bool kQAligned = true;
  static constexpr bool kKvAligned = true;
  using Storage = STORAGE;
  using Cache = CACHE;
};
using Attention = PrefillAttention<Constants>;
using Keys = SparseKeys<LISTED != 0>;

constexpr int kBlockQ = BLOCK_Q;
constexpr int kBlockK = BLOCK_K;
constexpr int kThreadQ = THREAD_Q;
constexpr int kThreadK = Attention::kThreadK;
constexpr int kHeadSize = HEAD_SIZE;

static_assert((kBlockK & (kBlockK - 1)) == 0, "rows of keys lie in a ring of two tiles");

// A block's queries, and the keys that it looks at by their numbers.
struct Work {
  Keys seen;
  int* rows;  // of the keys of two tiles, in shared memory
  int keys;   // rows of the cache
  int first_row;
  int position;  // of query first_row
  int first_key = 0;
  int last_key = 0;  // one past the last

  __device__ __forceinline__ int& row(int key) const { return rows[key % (2 * kBlockK)]; }

  __device__ __forceinline__ void prepare(int key) const {
    for (int i = static_cast<int>(threadIdx.x); i < kBlockK; i += Attention::kThreads) {
      row(key + i) = seen.row_of(key + i, keys);
    }
  }
  __device__ __forceinline__ void prepare_first() const {
    prepare(first_key);
    __syncthreads();
  }
  template <typename Matrix>
  __device__ __forceinline__ void move(Matrix& slice, int key) const {
    slice.move_to_rows([&](int index) { return row(key + index); });
  }
  __device__ __forceinline__ void load_scales(Attention::TileScales& scales, int key) const {
    scales.load([&](int index) { return row(key + index); });
  }

  // Strikes out the scores of keys that a query does not see.
  __device__ __forceinline__ void mask(float (&scores)[kThreadQ][kThreadK], Attention::Place place, int key) const {
    if (!seen.is_partial(key, key + kBlockK - 1)) {
      return;
    }
#pragma unroll
    for (int j = 0; j < kThreadK; ++j) {
      const int number = key + place.key_of(j);
      const int at = row(number);
      const unsigned int reach = seen.reach_of(number, at);
#pragma unroll
      for (int i = 0; i < kThreadQ; ++i) {
        const int behind = position + place.row_of(i) - at;
        scores[i][j] = static_cast<unsigned int>(behind) < reach ? scores[i][j] : no_score();
      }
    }
  }
};

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(Attention::kThreads, MIN_BLOCKS)
    attention_sparse_prefill(const STORAGE* __restrict__ q, const CACHE* __restrict__ k, const CACHE* __restrict__ v,
                             const float* __restrict__ k_scales, const float* __restrict__ v_scales,
                             const int* __restrict__ blocks, STORAGE* __restrict__ out, float* partials, int* counters,
                             int heads, int kv_heads, int queries, int keys, int window, int sinks, int stride,
                             int block_log2, int lists, int width) {
  __shared__ __align__(16) Attention::States states;
  __shared__ int rows[2 * kBlockK];
  const int head = static_cast<int>(blockIdx.x);
  const int kv_head = head / (heads / kv_heads);
  const int first_row = static_cast<int>(gridDim.y - 1 - blockIdx.y) * kBlockQ;
  const int position = keys - queries + first_row;
  const int last = position + kBlockQ < keys ? position + kBlockQ - 1 : keys - 1;
  const int* list = nullptr;
  if constexpr (LISTED != 0) {
    const int rows_of_lists = ((queries - 1) >> block_log2) + 1;
    const int index = (lists > 1 ? kv_head : 0) * rows_of_lists + (first_row >> block_log2);
    list = blocks + static_cast<long long>(index) * width;
  }
  Work work{Keys({window, sinks, stride, block_log2, width}, list, position, last), rows, keys, first_row, position};
  work.last_key = work.seen.count;
  int splits = 1;
  if constexpr (kKeysPerSplit > 0) {
    Attention::take_range<kKeysPerSplit>(work.first_key, work.last_key, splits);
  }
  if (static_cast<int>(blockIdx.z) >= splits) {
    return;
  }
  const int scale = Attention::kScaled ? kv_head : 0;
  Attention::run<kKeysPerSplit>(states,
                                {q + head * kHeadSize, k + kv_head * kHeadSize, v + kv_head * kHeadSize,
                                 k_scales + scale, v_scales + scale, out + head * kHeadSize, partials, counters,
                                 heads * kHeadSize, kv_heads * kHeadSize, kv_heads, heads * kHeadSize},
                                work, queries, keys - 1, splits);
}

#else

#include "common/sparse_reference.cuh"

// The same in float64. Launch: grid (QUERIES, HEADS), block kReferenceThreads.
extern "C" __global__ void attention_sparse_prefill_reference(
    const STORAGE* __restrict__ q, const CACHE* __restrict__ k, const CACHE* __restrict__ v,
    const float* __restrict__ k_scales, const float* __restrict__ v_scales, const int* __restrict__ blocks,
    double* __restrict__ out, float* partials, int* counters, int heads, int kv_heads, int queries, int keys,
    int window, int sinks, int stride, int block_log2, int lists, int width) {
  const int row = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  const int kv_head = head / (heads / kv_heads);
  const int kv_first = kv_head * kHeadSize;
  const int position = keys - queries + row;
  const long long place = (static_cast<long long>(row) * heads + head) * kHeadSize;
  const SparseSight sight{
      {window, sinks, stride, block_log2, width},
      lists > 0 ? blocks + static_cast<long long>((lists > 1 ? kv_head : 0) * (((queries - 1) >> block_log2) + 1) +
                                                  (row >> block_log2)) *
                               width
                : nullptr,
      position};
  attention_row_reference<kHeadSize>(
      q + place, ReferenceRows<CACHE>{k + kv_first, kv_heads * kHeadSize, k_scales, kv_head, kv_heads},
      ReferenceRows<CACHE>{v + kv_first, kv_heads * kHeadSize, v_scales, kv_head, kv_heads}, 0, position + 1,
      out + place, sight);
}

#endif
