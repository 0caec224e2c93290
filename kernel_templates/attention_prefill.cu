// out[QUERIES, HEADS, HEAD_DIM] = softmax(Q · Kᵀ / sqrt(HEAD_DIM) + mask) · V for each head, in one pass, sums in
// float32. Query head h reads key head h / (HEADS / KV_HEADS).
//
// Layouts: row i of q begins at i·Q_STRIDE, rows of k and v at i·KV_STRIDE; a row holds its heads one after the other.
// out is packed. Elements: STORAGE for q and out, CACHE for k and v.
// Mask: with CAUSAL, query i sees keys 0 … KEYS-QUERIES+i. With SEGMENTS > 1, query i sees the keys of its own segment,
// rows segment_starts[s] … segment_starts[s+1]-1. Queries that see nothing give zeros.
// FLOPs: 4·HEADS·HEAD_DIM for each pair that the mask lets through. Bytes: q, out, and k and v once.
// Requires: q, k, v and out aligned to 16 bytes; segment_starts ascending from 0 to QUERIES; CAUSAL or SEGMENTS > 1,
// not both; KEYS == QUERIES if SEGMENTS > 1.
// Launch: grid (HEADS, ceil(QUERIES / BLOCK_Q) + SEGMENTS - 1), block BLOCK_Q / THREAD_Q · ROW_LANES. Later tiles,
// longest under a causal mask, come first.
//
// A block owns BLOCK_Q queries of a head and walks over tiles of BLOCK_K keys: scores = Q · Kᵀ from slices along the
// depth, online softmax, out += P · V from slices of keys. ROW_LANES lanes of a warp share THREAD_Q rows, both of the
// scores and of out, so that a row's maximum, sum and factor never leave them. Only P goes through shared memory, from
// a warp to itself.

#include "common/online_softmax.cuh"
#include "common/segment_tile.cuh"
#include "common/slice.cuh"
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
#ifndef UNROLL
#define UNROLL 8  // unrolling of the loops over a slice
#endif
#ifndef Q_RESIDENT
#define Q_RESIDENT 0  // 1: all of a block's Q stays in shared memory; 0: it is read anew for each tile of keys
#endif
#ifndef INTERLEAVE
#define INTERLEAVE 1  // 1: neighbouring lanes have different queries, so that half a warp reads shared memory at once
#endif
#ifndef REDUCE_PTX
#define REDUCE_PTX 0  // 1: reductions over lanes as inline PTX
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 3  // resident blocks an SM asked of the compiler
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
constexpr int kUnroll = UNROLL;
constexpr bool kQResident = Q_RESIDENT != 0;
constexpr bool kInterleave = INTERLEAVE != 0;
constexpr bool kPtx = REDUCE_PTX != 0;
constexpr int kMinBlocks = MIN_BLOCKS;
constexpr int kHeadSize = HEAD_SIZE;
constexpr bool kCausal = CAUSAL_MASK != 0;
constexpr bool kSegmented = SEGMENTED != 0;

constexpr int kThreads = kBlockQ / kThreadQ * kLanes;
constexpr int kThreadK = kBlockK / kLanes;
constexpr int kThreadD = kHeadSize / kLanes;
constexpr int kGroups = 32 / kLanes;  // of lanes, in a warp
constexpr int kChunkQ = kChunkOf<kThreadQ>;
constexpr int kChunkK = kChunkOf<kThreadK>;
constexpr int kChunkD = kChunkOf<kThreadD>;
constexpr int kSlicesD = kHeadSize / kSliceD;
constexpr int kSlicesK = kBlockK / kSliceK;
constexpr int kLaneStride = kInterleave ? 2 : 1;  // between lanes of one group

// Floats of a row in shared memory. The padding lets neighbouring depths of one row be stored to different banks.
constexpr int kRowQ = kBlockQ + 4;
constexpr int kRowK = kBlockK + 4;
constexpr int kStageQ = kSliceD * kRowQ;
constexpr int kStageKv = kSliceD * kRowK > kSliceK* kHeadSize ? kSliceD* kRowK : kSliceK* kHeadSize;

static_assert(32 % kLanes == 0 && kBlockQ % (kGroups * kThreadQ) == 0, "whole warps share the block's queries");
static_assert(kBlockK % kLanes == 0 && kHeadSize % kLanes == 0, "lanes share keys and columns evenly");
static_assert(kHeadSize % kSliceD == 0 && kBlockK % kSliceK == 0, "whole slices");
static_assert(kSliceD % kVector == 0 && kHeadSize % kVector == 0 && kVector % 4 == 0,
              "rows of slices are whole vectors");
static_assert(!kInterleave || kLanes <= 16, "interleaved lanes need two groups in a warp");
static_assert(!(kCausal && kSegmented), "segments have no causal mask");

using SliceOfQ = Slice<STORAGE, kThreads, kBlockQ, kSliceD, kVector, Q_ALIGNED != 0>;
using SliceOfK = Slice<CACHE, kThreads, kBlockK, kSliceD, kVector, KV_ALIGNED != 0>;
using SliceOfV = Slice<CACHE, kThreads, kSliceK, kHeadSize, kVector, KV_ALIGNED != 0>;

// sum += left · right over DEPTH shared rows, LEFT_ROW and RIGHT_ROW floats long, a thread's values in chunks.
template <int DEPTH, int LEFT_ROW, int RIGHT_ROW, int CHUNK, int COLUMNS>
__device__ __forceinline__ void multiply(float (&sum)[kThreadQ][COLUMNS], const float* left, const float* right) {
#pragma unroll kUnroll
  for (int k = 0; k < DEPTH; ++k) {
    float a[kThreadQ];
    float b[COLUMNS];
    load_fragment<kChunkQ, kGroups * kChunkQ>(a, left + k * LEFT_ROW);
    load_fragment<CHUNK, kLanes * CHUNK>(b, right + k * RIGHT_ROW);
#pragma unroll
    for (int i = 0; i < kThreadQ; ++i) {
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) {
        sum[i][j] += a[i] * b[j];
      }
    }
  }
}

// Where a thread's values lie in the block's tile.
struct Place {
  int row;   // of its first query
  int lane;  // within its group

  __device__ __forceinline__ Place() {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane_of_warp = static_cast<int>(threadIdx.x) % 32;
    const int group = kInterleave ? lane_of_warp % 2 + lane_of_warp / (2 * kLanes) * 2 : lane_of_warp / kLanes;
    lane = lane_of_warp / kLaneStride % kLanes;
    row = warp * kGroups * kThreadQ + group * kChunkQ;
  }

  __device__ __forceinline__ int row_of(int i) const { return row + i / kChunkQ * (kGroups * kChunkQ) + i % kChunkQ; }
  __device__ __forceinline__ int key_of(int j) const {
    return lane * kChunkK + j / kChunkK * (kLanes * kChunkK) + j % kChunkK;
  }
};

// The queries of a block, and the keys that any of them sees.
struct Work {
  int first_row;
  int last_row;  // one past the last
  int first_key;
  int last_key;  // one past the last
  int diagonal;  // with a causal mask, query i sees keys up to i + diagonal
};

__device__ __forceinline__ Work find_work(const int* __restrict__ starts, int segments, int queries, int keys) {
  const int tile = static_cast<int>(gridDim.y - 1 - blockIdx.y);
  if constexpr (kSegmented) {
    const SegmentTile found = find_segment_tile<kBlockQ>(tile, starts, segments);
    return Work{found.first, found.end, found.begin, found.end, 0};
  }
  Work work{tile * kBlockQ, queries, 0, keys, keys - queries};
  if constexpr (kCausal) {
    const int seen = work.diagonal + work.first_row + kBlockQ;
    work.last_key = seen < keys ? seen : keys;
  }
  return work;
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

// Turns a tile's scores into weights, which it writes to shared_p as rows of keys, and scales what was summed before.
// The states' sums are of this thread's own keys.
__device__ __forceinline__ void soften(float (&scores)[kThreadQ][kThreadK], OnlineSoftmax (&state)[kThreadQ],
                                       float (&sum)[kThreadQ][kThreadD], float scale, float* shared_p, Place place) {
#pragma unroll
  for (int i = 0; i < kThreadQ; ++i) {
    float largest = scores[i][0];
#pragma unroll
    for (int j = 1; j < kThreadK; ++j) {
      largest = fmaxf(largest, scores[i][j]);
    }
    largest = lanes_reduce<Max, kPtx, kLanes, kLaneStride>(largest);
    const float factor = state[i].raise(largest * scale);
#pragma unroll
    for (int j = 0; j < kThreadK; ++j) {
      scores[i][j] = power_of_2(fmaf(scores[i][j], scale, -state[i].maximum));
      state[i].sum += scores[i][j];
    }
#pragma unroll
    for (int j = 0; j < kThreadD; ++j) {
      sum[i][j] *= factor;
    }
  }
#pragma unroll
  for (int j = 0; j < kThreadK; ++j) {
#pragma unroll
    for (int i = 0; i < kThreadQ; i += kChunkQ) {
      Vector<float, kChunkQ> weights;
#pragma unroll
      for (int e = 0; e < kChunkQ; ++e) {
        weights.element[e] = scores[i + e][j];
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
    OnlineSoftmax whole = state[i];
    whole.sum = lanes_reduce<Sum, kPtx, kLanes, kLaneStride>(whole.sum);
    const float normaliser = whole.normaliser();
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

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, kMinBlocks)
    attention_prefill(const STORAGE* __restrict__ q, const CACHE* __restrict__ k, const CACHE* __restrict__ v,
                      const int* __restrict__ segment_starts, STORAGE* __restrict__ out, int heads, int kv_heads,
                      int queries, int keys, int segments, int q_stride, int kv_stride) {
  __shared__ __align__(16) float shared_p[kBlockK * kRowQ];
  __shared__ __align__(16) float shared_q[kQResident ? kHeadSize * kRowQ : 2 * kStageQ];
  __shared__ __align__(16) float shared_kv[2 * kStageKv];
  const Work work = find_work(segment_starts, segments, queries, keys);
  if (work.first_row >= work.last_row) {
    return;
  }
  const int head = static_cast<int>(blockIdx.x);
  const int rows = work.last_row - work.first_row;
  const Place place;
  const long long kv_first = static_cast<long long>(work.first_key) * kv_stride + head / (heads / kv_heads) * kHeadSize;
  const int key_rows = (kCausal ? keys : work.last_key) - work.first_key;
  SliceOfQ slice_q(q + static_cast<long long>(work.first_row) * q_stride + head * kHeadSize, q_stride, rows);
  SliceOfK slice_k(k + kv_first, kv_stride, key_rows);
  SliceOfV slice_v(v + kv_first, kv_stride, key_rows);
  const long long next_tile = static_cast<long long>(kBlockK) * kv_stride - kHeadSize;
  const float scale = kLog2E / sqrtf(static_cast<float>(kHeadSize));

  OnlineSoftmax state[kThreadQ];
#pragma unroll
  for (OnlineSoftmax& row : state) {
    row = OnlineSoftmax::empty();
  }
  float sum[kThreadQ][kThreadD] = {};
  int stage = 0;
  if constexpr (kQResident) {
#pragma unroll 1
    for (int slice = 0; slice < kSlicesD; ++slice) {
      slice_q.load();
      slice_q.address += kSliceD;
      slice_q.template store_transposed<kRowQ>(shared_q + slice * kStageQ);
    }
  } else {
    slice_q.load();
    slice_q.template store_transposed<kRowQ>(shared_q);
  }
  slice_k.load();
  slice_k.template store_transposed<kRowK>(shared_kv);
  __syncthreads();

#pragma unroll 1
  for (int key = work.first_key; key < work.last_key; key += kBlockK) {
    float scores[kThreadQ][kThreadK] = {};
#pragma unroll 1
    for (int slice = 0; slice < kSlicesD; ++slice) {
      const bool more = slice + 1 < kSlicesD;
      if (more) {
        slice_k.address += kSliceD;
        slice_k.load();
        if constexpr (!kQResident) {
          slice_q.address += kSliceD;
          slice_q.load();
        }
      } else {
        slice_v.load();
      }
      multiply<kSliceD, kRowQ, kRowK, kChunkK>(scores, shared_q + (kQResident ? slice : stage) * kStageQ + place.row,
                                               shared_kv + stage * kStageKv + place.lane * kChunkK);
      stage ^= 1;
      if (more) {
        slice_k.template store_transposed<kRowK>(shared_kv + stage * kStageKv);
        if constexpr (!kQResident) {
          slice_q.template store_transposed<kRowQ>(shared_q + stage * kStageQ);
        }
      } else {
        slice_v.store(shared_kv + stage * kStageKv);
      }
      __syncthreads();
    }
    const int seen_by_all = kCausal ? work.first_row + work.diagonal + 1 : work.last_key;
    if (key + kBlockK > seen_by_all || key + kBlockK > work.last_key) {
      mask_scores(scores, work, place, key);
    }
    soften(scores, state, sum, scale, shared_p, place);
    __syncwarp();
    slice_k.address += next_tile + kSliceD;
    slice_k.rows -= kBlockK;
    if constexpr (!kQResident) {
      slice_q.address -= kHeadSize - kSliceD;
    }
#pragma unroll 1
    for (int slice = 0; slice < kSlicesK; ++slice) {
      slice_v.address += static_cast<long long>(kSliceK) * kv_stride;
      slice_v.rows -= kSliceK;
      const bool more = slice + 1 < kSlicesK;
      if (more) {
        slice_v.load();
      } else {
        slice_k.load();
        if constexpr (!kQResident) {
          slice_q.load();
        }
      }
      multiply<kSliceK, kRowQ, kHeadSize, kChunkD>(sum, shared_p + slice * kSliceK * kRowQ + place.row,
                                                   shared_kv + stage * kStageKv + place.lane * kChunkD);
      stage ^= 1;
      if (more) {
        slice_v.store(shared_kv + stage * kStageKv);
      } else {
        slice_k.template store_transposed<kRowK>(shared_kv + stage * kStageKv);
        if constexpr (!kQResident) {
          slice_q.template store_transposed<kRowQ>(shared_q + stage * kStageQ);
        }
      }
      __syncthreads();
    }
  }
  const long long out_stride = static_cast<long long>(heads) * kHeadSize;
  store_out(out + work.first_row * out_stride + head * kHeadSize, out_stride, sum, state, place, rows);
}

#ifdef PASCALINE_REFERENCE

#include "common/attention_reference.cuh"

// The same in float64. Launch: grid (HEADS, QUERIES), block kReferenceThreads.
extern "C" __global__ void attention_prefill_reference(const STORAGE* __restrict__ q, const CACHE* __restrict__ k,
                                                       const CACHE* __restrict__ v,
                                                       const int* __restrict__ segment_starts, double* __restrict__ out,
                                                       int heads, int kv_heads, int queries, int keys, int segments,
                                                       int q_stride, int kv_stride) {
  const int row = static_cast<int>(blockIdx.y);
  const int head = static_cast<int>(blockIdx.x);
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
  const long long kv_first = static_cast<long long>(first) * kv_stride + head / (heads / kv_heads) * kHeadSize;
  attention_row_reference<kHeadSize>(q + static_cast<long long>(row) * q_stride + head * kHeadSize, k + kv_first,
                                     v + kv_first, kv_stride, last - first,
                                     out + (static_cast<long long>(row) * heads + head) * kHeadSize);
}

#endif
