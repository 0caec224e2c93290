#pragma once

// Attention of many queries in tiles: what attention_prefill and attention_sparse_prefill share.
//
// A tile of kBlockQ queries of a head walks over tiles of kBlockK keys: scores = Q · Kᵀ from slices along the depth,
// online softmax, out += P · V from slices of keys. kLanes lanes of a warp share kThreadQ rows, both of the scores and
// of out, so that a row's maximum and sum are a few shuffles. Only P goes through shared memory, from a warp to itself.
// A key's scale is applied to its scores and a value's to its weights, so that elements of an int8 cache are only
// converted, on their way to shared memory.

#include "fragment.cuh"
#include "online_softmax.cuh"
#include "slice.cuh"
#include "split_softmax.cuh"
#include "vector.cuh"

// `C` names a kernel's constants: kBlockQ queries and kBlockK keys of a tile, kThreadQ queries of a thread, kLanes that
// share them, kSliceD of the depth and kSliceK of the keys in a slice, kVector elements of a load, kPtx for reductions
// in inline PTX, kHeadSize, kQAligned and kKvAligned for rows that begin at multiples of such a load; and the types
// Storage and Cache.
template <typename C>
struct PrefillAttention {
  using Storage = typename C::Storage;
  using Cache = typename C::Cache;
  static constexpr int kBlockQ = C::kBlockQ;
  static constexpr int kBlockK = C::kBlockK;
  static constexpr int kThreadQ = C::kThreadQ;
  static constexpr int kLanes = C::kLanes;
  static constexpr int kSliceD = C::kSliceD;
  static constexpr int kSliceK = C::kSliceK;
  static constexpr int kVector = C::kVector;
  static constexpr bool kPtx = C::kPtx;
  static constexpr int kHeadSize = C::kHeadSize;
  static constexpr bool kScaled = sizeof(Cache) == 1;

  static constexpr int kThreads = kBlockQ / kThreadQ * kLanes;
  static constexpr int kThreadK = kBlockK / kLanes;
  static constexpr int kGroups = 32 / kLanes;  // of lanes, in a warp
  static constexpr int kChunkQ = kChunkOf<kThreadQ>;
  static constexpr int kChunkK = kChunkOf<kThreadK>;
  // Columns of out: all lanes get as many chunks of four, then smaller chunks of the rest. The small chunks of the last
  // lanes may lie beyond the head.
  static constexpr int kWideD = kHeadSize / (4 * kLanes) * 4;
  static constexpr int kTailD = (kHeadSize - kWideD * kLanes + kLanes - 1) / kLanes;
  static constexpr int kThreadD = kWideD + kTailD;
  static constexpr int kTailChunkD = kChunkOf<kTailD>;
  static constexpr int kChunkD = kWideD > 0 ? 4 : kTailChunkD;
  static constexpr bool kMixedD = kWideD > 0 && kTailD > 0;
  static constexpr int kSlicesD = kHeadSize / kSliceD;
  static constexpr int kSlicesK = kBlockK / kSliceK;

  // Floats of a row in shared memory. The padding lets neighbouring depths of one row be stored to different banks.
  static constexpr int kRowQ = kBlockQ + 4;
  static constexpr int kRowK = kBlockK + 4;
  static constexpr int kStageQ = kSliceD * kRowQ;
  static constexpr int kStageK = kSliceD * kRowK;
  static constexpr int kRowV = kThreadD * kLanes;
  static constexpr int kStageV = kSliceK * kRowV;
  static constexpr int kStages = 2 * (kStageQ + kStageK);
  static constexpr int kWeights = kBlockK * kRowQ;

  static_assert(kLanes <= 16 && kBlockQ % (kGroups * kThreadQ) == 0,
                "whole warps, of two groups or more, share queries");
  static_assert(kBlockK % kLanes == 0, "lanes share keys evenly");
  static_assert(kHeadSize % kSliceD == 0 && kBlockK % kSliceK == 0, "whole slices");
  static_assert(kSliceD % kVector == 0 && kHeadSize % kVector == 0 && kVector % 4 == 0,
                "rows of slices are whole vectors");

  using SliceOfQ = Slice<Storage, kThreads, kBlockQ, kSliceD, kVector, C::kQAligned>;
  using SliceOfK = Slice<Cache, kThreads, kBlockK, kSliceD, kVector, C::kKvAligned>;
  using SliceOfV = Slice<Cache, kThreads, kSliceK, kHeadSize, kVector, C::kKvAligned>;
  // A depth's multiply-adds go along the shorter side of a thread's tile: so the compiler finds the most registers in
  // different banks.
  template <int COLUMNS>
  static constexpr int kOrder = kThreadQ <= COLUMNS ? 2 : 1;
  using ProductQk = Product<kThreadQ, kChunkQ, kGroups * kChunkQ, kRowQ, kThreadK, kChunkK, kLanes * kChunkK, kRowK,
                            kOrder<kThreadK>>;
  using ProductPv = Product<kThreadQ, kChunkQ, kGroups * kChunkQ, kRowQ, kThreadD, kChunkD, kLanes * kChunkD, kRowV,
                            kOrder<kThreadD>, 0, kMixedD ? kTailD : 0, kTailChunkD, kLanes * kTailChunkD>;

  // Where a thread's values lie in the block's tile. Neighbouring lanes have different queries, so that half a warp
  // reads few words of each operand at once.
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
    // A lane's first column of out in chunks of kChunkD, and in the smaller ones after them.
    __device__ __forceinline__ int wide_column() const { return lane * kChunkD; }
    __device__ __forceinline__ int tail_column() const { return kWideD * kLanes + lane * kTailChunkD; }
  };

  // Over the lanes that share their queries.
  template <typename Operation>
  static __device__ __forceinline__ float group_reduce(float value) {
    return lanes_reduce<Operation, kPtx, kLanes, 2>(value);
  }

  // Leaves a block its part of a tile's keys, `first` to before `last`, of which up to gridDim.z blocks take KEYS or
  // more each; `splits` becomes how many do, if there are several. The others have nothing to do.
  template <int KEYS>
  static __device__ __forceinline__ void take_range(int& first, int& last, int& splits) {
    static_assert(KEYS % kBlockK == 0, "splits are whole tiles of keys");
    const int tiles = (last - first + kBlockK - 1) / kBlockK;
    const int wanted = (tiles * kBlockK + KEYS - 1) / KEYS;
    const int most = wanted < static_cast<int>(gridDim.z) ? wanted : static_cast<int>(gridDim.z);
    if (most > 1) {
      const int share = (tiles + most - 1) / most;
      splits = (tiles + share - 1) / share;
      first += static_cast<int>(blockIdx.z) * share * kBlockK;
      const int end = first + share * kBlockK;
      last = end < last ? end : last;
    }
  }

  // The scales of a tile's keys, then those of its values, on their way through registers to shared memory.
  struct TileScales {
    static constexpr int kFloats = 2 * kBlockK;
    static constexpr int kLoads = (kFloats + kThreads - 1) / kThreads;

    const float* k;  // the head's scale of row 0
    const float* v;
    int stride;  // from one row's to the next's
    float staged[kLoads];

    // Of a tile; `row_of` tells the cache's row of each of its keys.
    template <typename RowOf>
    __device__ __forceinline__ void load(RowOf row_of) {
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        const int index = static_cast<int>(threadIdx.x) + i * kThreads;
        if (kFloats % kThreads == 0 || index < kFloats) {
          staged[i] = (index < kBlockK ? k : v)[static_cast<long long>(row_of(index % kBlockK)) * stride];
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
  static __device__ __forceinline__ void load_scales(float (&scales)[kThreadK], const float* shared, Place place) {
    load_fragment<kChunkK, kLanes * kChunkK>(scales, shared + place.lane * kChunkK);
  }

  static __device__ __forceinline__ void scale_scores(float (&scores)[kThreadQ][kThreadK], const float* key_scales,
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
  static __device__ __forceinline__ void soften(float (&scores)[kThreadQ][kThreadK], float (&sum)[kThreadQ][kThreadD],
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
  static __device__ __forceinline__ void store_out(Storage* out, long long stride,
                                                   const float (&sum)[kThreadQ][kThreadD],
                                                   const OnlineSoftmax (&state)[kThreadQ], Place place, int rows) {
#pragma unroll
    for (int i = 0; i < kThreadQ; ++i) {
      const float normaliser = state[i].normaliser();
      if (place.row_of(i) < rows) {
#pragma unroll
        for (int j = 0; j < (kMixedD ? kWideD : kThreadD); j += kChunkD) {
          store_columns<kChunkD>(out + place.row_of(i) * stride, place.wide_column() + j * kLanes, &sum[i][j],
                                 normaliser);
        }
#pragma unroll
        for (int j = 0; kMixedD && j < kTailD; j += kTailChunkD) {
          store_columns<kTailChunkD>(out + place.row_of(i) * stride, place.tail_column() + j * kLanes,
                                     &sum[i][kWideD + j], normaliser);
        }
      }
    }
  }

  template <int CHUNK>
  static __device__ __forceinline__ void store_columns(Storage* row, int column, const float* sum, float normaliser) {
    Vector<Storage, CHUNK> values;
#pragma unroll
    for (int e = 0; e < CHUNK; ++e) {
      values.element[e] = from_float<Storage>(sum[e] * normaliser);
    }
    if (kRowV == kHeadSize || column < kHeadSize) {
      store_vector(row + column, values);
    }
  }

  // Walks over the keys of `keys`, which are numbered in the order in which they are looked at: `first_key` to before
  // `last_key`, for queries from row `first_row` on. For a tile of keys that begins at number `key`: `prepare` makes
  // ready, before at least one barrier, for what follows; `move` brings a slice of K or V to its rows, `load_scales`
  // loads their scales, and `mask` strikes out the scores that do not count.
  template <typename Keys>
  static __device__ __forceinline__ void attend(float (&sum)[kThreadQ][kThreadD], States& states, SliceOfQ& slice_q,
                                                SliceOfK& slice_k, SliceOfV& slice_v, TileScales& tile_scales,
                                                const Keys& keys, Place place) {
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
      const float* values = shared_v + stage * kStageV;
      return Sides{shared + slice * (kSliceK * kRowQ) + place.row, values + place.wide_column(),
                   values + place.tail_column()};
    };
    const auto load_qk = [&] {
      slice_k.load();
      slice_k.move_columns(kSliceD);
      slice_q.load();
      slice_q.move_columns(kSliceD);
    };
    slice_q.move_to(keys.first_row);
    keys.prepare_first();
    keys.move(slice_k, keys.first_key);
    load_qk();
    store_qk(0);
    __syncthreads();

#pragma unroll 1
    for (int key = keys.first_key; key < keys.last_key; key += kBlockK) {
      keys.prepare(key + kBlockK);
      float scores[kThreadQ][kThreadK] = {};
      ProductQk product_qk;
      product_qk.begin(sides_qk(0));
      for_each_slice<kSlicesD>([&](int, int stage, bool more) {
        if (more) {
          load_qk();
        } else {
          keys.move(slice_v, key);
          slice_v.load();
          if constexpr (kScaled) {
            keys.load_scales(tile_scales, key);
          }
        }
        product_qk.template multiply<kSliceD>(scores, sides_qk(stage), more, [&] {
          if (more) {
            store_qk(stage ^ 1);
          } else {
            slice_v.template store<kRowV>(shared_v);
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
      keys.mask(scores, place, key);
      soften(scores, sum, states, scale, shared_scales + kBlockK, shared, place);
      __syncwarp();
      slice_q.move_columns(-kHeadSize);
      ProductPv product_pv;
      product_pv.begin(sides_pv(0, 0));
      for_each_slice<kSlicesK>([&](int slice, int stage, bool more) {
        if (more) {
          keys.move(slice_v, key + (slice + 1) * kSliceK);
          slice_v.load();
        } else {
          keys.move(slice_k, key + kBlockK);
          load_qk();
        }
        product_pv.template multiply<kSliceK>(sum, sides_pv(slice, stage), more, [&] {
          if (more) {
            slice_v.template store<kRowV>(shared_v + (stage ^ 1) * kStageV);
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

  // One head's matrices and its part of out, and what all heads have in common.
  struct Operands {
    const Storage* q;
    const Cache* k;
    const Cache* v;
    const float* k_scales;  // the head's of row 0, if there are any
    const float* v_scales;
    Storage* out;  // rows out_stride apart
    float* partials;
    int* counters;
    int q_stride;
    int kv_stride;
    int scale_stride;
    int out_stride;
  };

  // All that a block does: its tile's queries, of which `last_row` is the first that there is none of, over `keys`, of
  // a cache whose last row is `last_key`; `splits` blocks share the queries, KEYS_PER_SPLIT keys or more each (0: one).
  template <int KEYS, typename Keys>
  static __device__ __forceinline__ void run(States& states, const Operands& of, const Keys& keys, int last_row,
                                             int last_key, int splits) {
    const Place place;
    for (int i = static_cast<int>(threadIdx.x); i < kBlockQ; i += kThreads) {
      states.maximum[i] = kNoMaximum;
      states.sum[i] = 0.0f;
    }
    SliceOfQ slice_q(of.q, of.q_stride, last_row - 1);
    SliceOfK slice_k(of.k, of.kv_stride, last_key);
    SliceOfV slice_v(of.v, of.kv_stride, last_key);
    TileScales tile_scales{of.k_scales, of.v_scales, of.scale_stride, {}};
    float sum[kThreadQ][kThreadD] = {};
    attend(sum, states, slice_q, slice_k, slice_v, tile_scales, keys, place);

    int rows[kThreadQ];
    OnlineSoftmax state[kThreadQ];
#pragma unroll
    for (int i = 0; i < kThreadQ; ++i) {
      rows[i] = place.row_of(i);
      state[i] = {states.maximum[place.row_of(i)], states.sum[place.row_of(i)]};
    }
    if constexpr (KEYS > 0) {
      using Split = SplitSoftmax<kThreads, kBlockQ, kThreadQ, kThreadD>;
      const long long tile = static_cast<long long>(blockIdx.y) * gridDim.x + blockIdx.x;
      if (splits > 1 &&
          !Split::combine(sum, state, rows, place.lane == 0, of.partials + tile * gridDim.z * Split::kFloats,
                          of.counters + tile, static_cast<int>(blockIdx.z), splits)) {
        return;
      }
    }
    store_out(of.out + static_cast<long long>(keys.first_row) * of.out_stride, of.out_stride, sum, state, place,
              last_row - keys.first_row);
  }
};
