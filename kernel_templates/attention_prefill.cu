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
// not both; KEYS == QUERIES if SEGMENTS > 1. Where gridDim.z > 1: `partials` of BLOCK_Q·(HEAD_DIM + 2) floats a block,
// and `counters` of one int for each x and y of the grid, zero before the first launch (each launch leaves them zero).
// Launch: grid (HEADS, ceil(QUERIES / BLOCK_Q) + SEGMENTS - 1, splits), block BLOCK_Q / THREAD_Q · ROW_LANES. Later
// tiles, longest under a causal mask, come first.
//
// A tile of BLOCK_Q queries of a head walks over tiles of BLOCK_K keys: scores = Q · Kᵀ from slices along the depth,
// online softmax, out += P · V from slices of keys. ROW_LANES lanes of a warp share THREAD_Q rows, both of the scores
// and of out, so that a row's maximum and sum are a few shuffles. Only P goes through shared memory, from a warp to
// itself. A tile that sees many keys is cut into ranges of about KEYS_PER_SPLIT, a block each and up to gridDim.z; the
// block that arrives last combines what they give in the order of the ranges. A key's scale is applied to its scores
// and a value's to its weights, so that elements of an int8 cache are only converted, on their way to shared memory.

#include "common/fragment.cuh"
#include "common/online_softmax.cuh"
#include "common/segment_tile.cuh"
#include "common/slice.cuh"
#include "common/split_softmax.cuh"
#include "common/types.cuh"
#include "common/vector.cuh"

#ifndef BLOCK_Q
#define BLOCK_Q 64  // queries of a block
#endif
#ifndef BLOCK_K
#define BLOCK_K 64  // keys of a tile
#endif
#ifndef THREAD_Q
#define THREAD_Q 8  // queries of a thread
#endif
#ifndef ROW_LANES
#define ROW_LANES 16  // lanes of a warp that share their queries, and split keys and columns of out among them
#endif
#ifndef SLICE_D
#define SLICE_D 8  // depth of a slice of Q and K in shared memory
#endif
#ifndef SLICE_K
#define SLICE_K 8  // keys of a slice of V in shared memory
#endif
#ifndef VECTOR
#define VECTOR 4  // elements a global load takes
#endif
#ifndef KEYS_PER_SPLIT
#define KEYS_PER_SPLIT 64  // keys a block walks over before others help with its queries; 0: no matter how many
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
#ifndef CAUSAL_MASK
#define CAUSAL_MASK 1  // CAUSAL
#endif
#ifndef SEGMENTED
#define SEGMENTED 0  // 1: SEGMENTS > 1
#endif
#ifndef Q_ALIGNED
#define Q_ALIGNED 0  // 1: Q_STRIDE is a multiple of VECTOR
#endif
#ifndef KV_ALIGNED
#define KV_ALIGNED 0  // 1: KV_STRIDE is a multiple of VECTOR
#endif
#ifndef STORAGE
#define STORAGE float32  // element type of q and out
#endif
#ifndef CACHE
#define CACHE float32  // element type of k and v
#endif

namespace {

constexpr int kBlockQ = BLOCK_Q;
constexpr int kBlockK = BLOCK_K;
constexpr int kThreadQ = THREAD_Q;
constexpr int kLanes = ROW_LANES;
constexpr int kSliceD = SLICE_D;
constexpr int kSliceK = SLICE_K;
constexpr int kVector = VECTOR;
constexpr int kKeysPerSplit = KEYS_PER_SPLIT;
constexpr bool kPtx = REDUCE_PTX != 0;
constexpr int kMinBlocks = MIN_BLOCKS;
constexpr int kHeadSize = HEAD_SIZE;
constexpr bool kCausal = CAUSAL_MASK != 0;
constexpr bool kSegmented = SEGMENTED != 0;
constexpr bool kScaled = sizeof(CACHE) == 1;

constexpr int kThreads = kBlockQ / kThreadQ * kLanes;
constexpr int kThreadK = kBlockK / kLanes;
constexpr int kThreadD = kHeadSize / kLanes;
constexpr int kGroups = 32 / kLanes;  // of lanes, in a warp
constexpr int kChunkQ = kChunkOf<kThreadQ>;
constexpr int kChunkK = kChunkOf<kThreadK>;
constexpr int kChunkD = kChunkOf<kThreadD>;
constexpr int kSlicesD = kHeadSize / kSliceD;
constexpr int kSlicesK = kBlockK / kSliceK;

// Floats of a row in shared memory. The padding lets neighbouring depths of one row be stored to different banks.
constexpr int kRowQ = kBlockQ + 4;
constexpr int kRowK = kBlockK + 4;
constexpr int kStageQ = kSliceD * kRowQ;
constexpr int kStageK = kSliceD * kRowK;
constexpr int kStageV = kSliceK * kHeadSize;
constexpr int kStages = 2 * (kStageQ + kStageK);
constexpr int kWeights = kBlockK * kRowQ;

static_assert(kLanes <= 16 && kBlockQ % (kGroups * kThreadQ) == 0, "whole warps, of two groups or more, share queries");
static_assert(kBlockK % kLanes == 0 && kHeadSize % kLanes == 0, "lanes share keys and columns evenly");
static_assert(kHeadSize % kSliceD == 0 && kBlockK % kSliceK == 0, "whole slices");
static_assert(kSliceD % kVector == 0 && kHeadSize % kVector == 0 && kVector % 4 == 0,
              "rows of slices are whole vectors");
static_assert(kKeysPerSplit % kBlockK == 0, "splits are whole tiles of keys");
static_assert(!(kCausal && kSegmented), "segments have no causal mask");

using SliceOfQ = Slice<STORAGE, kThreads, kBlockQ, kSliceD, kVector, Q_ALIGNED != 0>;
using SliceOfK = Slice<CACHE, kThreads, kBlockK, kSliceD, kVector, KV_ALIGNED != 0>;
using SliceOfV = Slice<CACHE, kThreads, kSliceK, kHeadSize, kVector, KV_ALIGNED != 0>;
using ProductQk = Product<kThreadQ, kChunkQ, kGroups * kChunkQ, kRowQ, kThreadK, kChunkK, kLanes * kChunkK, kRowK, 1>;
using ProductPv =
    Product<kThreadQ, kChunkQ, kGroups * kChunkQ, kRowQ, kThreadD, kChunkD, kLanes * kChunkD, kHeadSize, 1>;

// Where a thread's values lie in the block's tile. Neighbouring lanes have different queries, so that half a warp reads
// few words of each operand at once.
struct Place {
  int row;   // of its first query
  int lane;  // within its group

  __device__ __forceinline__ Place() {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane_of_warp = static_cast<int>(threadIdx.x) % 32;
    lane = lane_of_warp / 2 % kLanes;
    row = warp * kGroups * kThreadQ + (lane_of_warp % 2 + lane_of_warp / (2 * kLanes) * 2) * kChunkQ;
  }

  __device__ __forceinline__ int row_of(int i) const { return row + i / kChunkQ * (kGroups * kChunkQ) + i % kChunkQ; }
  __device__ __forceinline__ int key_of(int j) const {
    return lane * kChunkK + j / kChunkK * (kLanes * kChunkK) + j % kChunkK;
  }
};

// Over the lanes that share their queries.
template <typename Operation>
__device__ __forceinline__ float group_reduce(float value) {
  return lanes_reduce<Operation, kPtx, kLanes, 2>(value);
}

// The queries of a block, and the keys it looks at.
struct Work {
  int first_row;
  int last_row;  // one past the last
  int first_key;
  int last_key;  // one past the last
  int diagonal;  // with a causal mask, query i sees keys up to i + diagonal
  int splits;    // blocks that share the queries; this one has nothing to do if it is not among them
};

// What any of the queries of this block's tile sees.
__device__ __forceinline__ Work find_tile(const int* __restrict__ starts, int segments, int queries, int keys) {
  const int tile = static_cast<int>(gridDim.y - 1 - blockIdx.y);
  if constexpr (kSegmented) {
    const SegmentTile found = find_segment_tile<kBlockQ>(tile, starts, segments);
    return Work{found.first, found.end, found.begin, found.end, 0, found.first < found.end ? 1 : 0};
  }
  Work work{tile * kBlockQ, queries, 0, keys, keys - queries, 1};
  if constexpr (kCausal) {
    const int seen = work.diagonal + work.first_row + kBlockQ;
    work.last_key = seen < keys ? seen : keys;
  }
  return work;
}

// Leaves this block its range of the tile's keys.
__device__ __forceinline__ void take_range(Work& work) {
  const int tiles = (work.last_key - work.first_key + kBlockK - 1) / kBlockK;
  const int wanted = (tiles * kBlockK + kKeysPerSplit - 1) / kKeysPerSplit;
  const int most = wanted < static_cast<int>(gridDim.z) ? wanted : static_cast<int>(gridDim.z);
  if (most > 1) {
    const int share = (tiles + most - 1) / most;
    work.splits = (tiles + share - 1) / share;
    work.first_key += static_cast<int>(blockIdx.z) * share * kBlockK;
    const int end = work.first_key + share * kBlockK;
    work.last_key = end < work.last_key ? end : work.last_key;
  }
}

// Strikes out the scores of keys that a query does not see.
__device__ __forceinline__ void mask_scores(float (&scores)[kThreadQ][kThreadK], const Work& work, Place place,
                                            int first_key) {
#pragma unroll
  for (int i = 0; i < kThreadQ; ++i) {
    int last_key = work.last_key;
    if constexpr (kCausal) {
      const int seen = work.first_row + place.row_of(i) + work.diagonal + 1;
      last_key = seen < last_key ? seen : last_key;
    }
#pragma unroll
    for (int j = 0; j < kThreadK; ++j) {
      scores[i][j] = first_key + place.key_of(j) < last_key ? scores[i][j] : no_score();
    }
  }
}

// The scales of a tile's keys, then those of its values, on their way through registers to shared memory.
struct TileScales {
  static constexpr int kFloats = 2 * kBlockK;
  static constexpr int kLoads = (kFloats + kThreads - 1) / kThreads;

  const float* k;  // the head's scale of row 0
  const float* v;
  int stride;    // from one row's to the next's
  int last_row;  // of the cache
  float staged[kLoads];

  // Of a tile that begins at row `first`; as those of Slice, rows beyond the cache read the last one.
  __device__ __forceinline__ void load(int first) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int index = static_cast<int>(threadIdx.x) + i * kThreads;
      if (kFloats % kThreads == 0 || index < kFloats) {
        const int wanted = first + index % kBlockK;
        staged[i] = (index < kBlockK ? k : v)[static_cast<long long>(wanted < last_row ? wanted : last_row) * stride];
      }
    }
  }
  __device__ __forceinline__ void store(float* shared) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int index = static_cast<int>(threadIdx.x) + i * kThreads;
      if (kFloats % kThreads == 0 || index < kFloats) {
        shared[index] = staged[i];
      }
    }
  }
};

// Those of a thread's keys, of `shared`, a tile's.
__device__ __forceinline__ void load_scales(float (&scales)[kThreadK], const float* shared, Place place) {
  load_fragment<kChunkK, kLanes * kChunkK>(scales, shared + place.lane * kChunkK);
}

__device__ __forceinline__ void scale_scores(float (&scores)[kThreadQ][kThreadK], const float* key_scales,
                                             Place place) {
  float scales[kThreadK];
  load_scales(scales, key_scales, place);
#pragma unroll
  for (int i = 0; i < kThreadQ; ++i) {
#pragma unroll
    for (int j = 0; j < kThreadK; ++j) {
      scores[i][j] *= scales[j];
    }
  }
}

// The block's softmax states, in shared memory: between tiles of keys registers are for sums and scores.
struct States {
  float maximum[kBlockQ];
  float sum[kBlockQ];
};

// Turns a tile's scores into weights, which it writes to shared_p as rows of keys, times the values' scales if there
// are some, and scales what was summed before.
__device__ __forceinline__ void soften(float (&scores)[kThreadQ][kThreadK], float (&sum)[kThreadQ][kThreadD],
                                       States& states, float scale, const float* value_scales, float* shared_p,
                                       Place place) {
#pragma unroll
  for (int i = 0; i < kThreadQ; ++i) {
    const int row = place.row_of(i);
    OnlineSoftmax state{states.maximum[row], 0.0f};
    float largest = scores[i][0];
#pragma unroll
    for (int j = 1; j < kThreadK; ++j) {
      largest = fmaxf(largest, scores[i][j]);
    }
    const float factor = state.raise(group_reduce<Max>(largest) * scale);
#pragma unroll
    for (int j = 0; j < kThreadK; ++j) {
      scores[i][j] = power_of_2(fmaf(scores[i][j], scale, -state.maximum));
      state.sum += scores[i][j];
    }
    const float weights = group_reduce<Sum>(state.sum);
    __syncwarp();  // until all lanes have read the row's state
    if (place.lane == 0) {
      states.maximum[row] = state.maximum;
      states.sum[row] = states.sum[row] * factor + weights;
    }
#pragma unroll
    for (int j = 0; j < kThreadD; ++j) {
      sum[i][j] *= factor;
    }
  }
  [[maybe_unused]] float scales[kThreadK];
  if constexpr (kScaled) {
    load_scales(scales, value_scales, place);
  }
#pragma unroll
  for (int j = 0; j < kThreadK; ++j) {
#pragma unroll
    for (int i = 0; i < kThreadQ; i += kChunkQ) {
      Vector<float, kChunkQ> weights;
#pragma unroll
      for (int e = 0; e < kChunkQ; ++e) {
        weights.element[e] = kScaled ? scores[i + e][j] * scales[j] : scores[i + e][j];
      }
      store_vector(shared_p + place.key_of(j) * kRowQ + place.row_of(i), weights);
    }
  }
}

// Writes a thread's part of `out`, whose rows are `stride` apart.
__device__ __forceinline__ void store_out(STORAGE* out, long long stride, const float (&sum)[kThreadQ][kThreadD],
                                          const OnlineSoftmax (&state)[kThreadQ], Place place, int rows) {
#pragma unroll
  for (int i = 0; i < kThreadQ; ++i) {
    const float normaliser = state[i].normaliser();
    if (place.row_of(i) < rows) {
#pragma unroll
      for (int j = 0; j < kThreadD; j += kChunkD) {
        Vector<STORAGE, kChunkD> values;
#pragma unroll
        for (int e = 0; e < kChunkD; ++e) {
          values.element[e] = from_float<STORAGE>(sum[i][j + e] * normaliser);
        }
        store_vector(out + place.row_of(i) * stride + place.lane * kChunkD + j * kLanes, values);
      }
    }
  }
}

// Walks over the keys of `work`.
__device__ __forceinline__ void attend(float (&sum)[kThreadQ][kThreadD], States& states, SliceOfQ& slice_q,
                                       SliceOfK& slice_k, SliceOfV& slice_v, TileScales& tile_scales, const Work& work,
                                       Place place) {
  // Weights lie where the slices of Q and K were that they come from.
  __shared__ __align__(16) float shared[kStages > kWeights ? kStages : kWeights];
  __shared__ __align__(16) float shared_v[2 * kStageV];
  __shared__ __align__(16) float shared_scales[kScaled ? TileScales::kFloats : 4];
  float* shared_q = shared + 2 * kStageK;
  const float scale = kLog2E / sqrtf(static_cast<float>(kHeadSize));
  const auto store_qk = [&](int stage) {
    slice_k.template store_transposed<kRowK>(shared + stage * kStageK);
    slice_q.template store_transposed<kRowQ>(shared_q + stage * kStageQ);
  };
  const auto sides_qk = [&](int stage) {
    return Sides{shared_q + stage * kStageQ + place.row, shared + stage * kStageK + place.lane * kChunkK};
  };
  const auto sides_pv = [&](int slice, int stage) {
    return Sides{shared + slice * (kSliceK * kRowQ) + place.row, shared_v + stage * kStageV + place.lane * kChunkD};
  };
  const auto load_qk = [&] {
    slice_k.load();
    slice_k.move_columns(kSliceD);
    slice_q.load();
    slice_q.move_columns(kSliceD);
  };
  slice_q.move_to(work.first_row);
  slice_k.move_to(work.first_key);
  load_qk();
  store_qk(0);
  __syncthreads();

#pragma unroll 1
  for (int key = work.first_key; key < work.last_key; key += kBlockK) {
    float scores[kThreadQ][kThreadK] = {};
    ProductQk product_qk;
    product_qk.begin(sides_qk(0));
    for_each_slice<kSlicesD>([&](int, int stage, bool more) {
      if (more) {
        load_qk();
      } else {
        slice_v.move_to(key);
        slice_v.load();
        if constexpr (kScaled) {
          tile_scales.load(key);
        }
      }
      product_qk.template multiply<kSliceD>(scores, sides_qk(stage), more, [&] {
        if (more) {
          store_qk(stage ^ 1);
        } else {
          slice_v.store(shared_v);
          if constexpr (kScaled) {
            tile_scales.store(shared_scales);
          }
        }
        __syncthreads();
        return sides_qk(stage ^ 1);
      });
    });
    if constexpr (kScaled) {
      scale_scores(scores, shared_scales, place);
    }
    const int seen_by_all = kCausal ? work.first_row + work.diagonal + 1 : work.last_key;
    if (key + kBlockK > seen_by_all || key + kBlockK > work.last_key) {
      mask_scores(scores, work, place, key);
    }
    soften(scores, sum, states, scale, shared_scales + kBlockK, shared, place);
    __syncwarp();
    slice_q.move_columns(-kHeadSize);
    ProductPv product_pv;
    product_pv.begin(sides_pv(0, 0));
    for_each_slice<kSlicesK>([&](int slice, int stage, bool more) {
      if (more) {
        slice_v.move_to(key + (slice + 1) * kSliceK);
        slice_v.load();
      } else {
        slice_k.move_to(key + kBlockK);
        load_qk();
      }
      product_pv.template multiply<kSliceK>(sum, sides_pv(slice, stage), more, [&] {
        if (more) {
          slice_v.store(shared_v + (stage ^ 1) * kStageV);
        } else {
          __syncthreads();  // until all warps have read their weights
          store_qk(0);
        }
        __syncthreads();
        return sides_pv(slice + 1, stage ^ 1);
      });
    });
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, kMinBlocks)
    attention_prefill(const STORAGE* __restrict__ q, const CACHE* __restrict__ k, const CACHE* __restrict__ v,
                      const float* __restrict__ k_scales, const float* __restrict__ v_scales,
                      const int* __restrict__ segment_starts, STORAGE* __restrict__ out, float* partials, int* counters,
                      int heads, int kv_heads, int queries, int keys, int segments, int q_stride, int kv_stride) {
  __shared__ __align__(16) States states;
  Work work = find_tile(segment_starts, segments, queries, keys);
  const int last_key = (kCausal ? keys : work.last_key) - 1;
  if constexpr (kKeysPerSplit > 0) {
    take_range(work);
  }
  if (static_cast<int>(blockIdx.z) >= work.splits) {
    return;
  }
  const Place place;
  for (int i = static_cast<int>(threadIdx.x); i < kBlockQ; i += kThreads) {
    states.maximum[i] = kNoMaximum;
    states.sum[i] = 0.0f;
  }
  const int head = static_cast<int>(blockIdx.x);
  const int kv_head = head / (heads / kv_heads);
  const int kv_first = kv_head * kHeadSize;
  SliceOfQ slice_q(q + head * kHeadSize, q_stride, work.last_row - 1);
  SliceOfK slice_k(k + kv_first, kv_stride, last_key);
  SliceOfV slice_v(v + kv_first, kv_stride, last_key);
  TileScales tile_scales{k_scales, v_scales, kv_heads, last_key, {}};
  if constexpr (kScaled) {
    tile_scales.k += kv_head;
    tile_scales.v += kv_head;
  }
  float sum[kThreadQ][kThreadD] = {};
  attend(sum, states, slice_q, slice_k, slice_v, tile_scales, work, place);

  int rows[kThreadQ];
  OnlineSoftmax state[kThreadQ];
#pragma unroll
  for (int i = 0; i < kThreadQ; ++i) {
    rows[i] = place.row_of(i);
    state[i] = {states.maximum[place.row_of(i)], states.sum[place.row_of(i)]};
  }
  if constexpr (kKeysPerSplit > 0) {
    using Split = SplitSoftmax<kThreads, kBlockQ, kThreadQ, kThreadD, kChunkD>;
    const long long tile = static_cast<long long>(blockIdx.y) * gridDim.x + blockIdx.x;
    if (work.splits > 1 &&
        !Split::combine(sum, state, rows, place.lane == 0, partials + tile * gridDim.z * Split::kFloats,
                        counters + tile, static_cast<int>(blockIdx.z), work.splits)) {
      return;
    }
  }
  const long long out_stride = static_cast<long long>(heads) * kHeadSize;
  store_out(out + work.first_row * out_stride + head * kHeadSize, out_stride, sum, state, place,
            work.last_row - work.first_row);
}

#ifdef PASCALINE_REFERENCE

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
