#pragma once

// Attention of one query a head to the rows of a cache, by a grid of (KV_HEADS, splits) blocks, or by blocks that take
// such shares in turn: what the kernels of attention of one query share.
//
// A block serves all query heads of one key head, so that the cache is read once. Each split takes a range of the
// context, which is few pages of memory; what each gives (maximum, sum, sums of V) is combined by the block that comes
// last, in their order. Within a block kLanes lanes take a key: each reads its part of k and v, kBatch keys at a time,
// and the next keys are on their way while values are taken in. Lanes and warps keep softmax states of their own until
// the end. A key's scale is applied to its score and a value's to its weight, so that elements of an int8 cache are
// only converted.

#include "online_softmax.cuh"
#include "row_output.cuh"
#include "split.cuh"
#include "vector.cuh"
#include "widen.cuh"

// Which of the shares a block does: of a key head, and of the ranges of the context.
struct AttentionShare {
  int kv_head;
  int kv_heads;
  int split;
  int splits;

  static __device__ __forceinline__ AttentionShare of_block() {
    return {static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), static_cast<int>(blockIdx.y),
            static_cast<int>(gridDim.y)};
  }
};

// `C` names a kernel's constants: kWarps of a block, kLanes that share a key, kBatch of keys a lane reads at a time,
// kPtx for reductions in inline PTX, kHeadSize, kGroup query heads a key head, kVector elements of k and v that a load
// takes, kAligned for rows that begin at multiples of such a load, kNewest for a key that is not in the cache yet; and
// the types Cache and Output.
template <typename C>
struct DecodeAttention {
  using Cache = typename C::Cache;
  static constexpr int kWarps = C::kWarps;
  static constexpr int kLanes = C::kLanes;
  static constexpr int kBatch = C::kBatch;
  static constexpr bool kPtx = C::kPtx;
  static constexpr int kHeadSize = C::kHeadSize;
  static constexpr int kGroup = C::kGroup;
  static constexpr int kVector = C::kVector;
  static constexpr bool kAligned = C::kAligned;
  static constexpr bool kScaled = sizeof(Cache) == 1;

  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kKeysPerWarp = 32 / kLanes;            // at a time
  static constexpr int kKeysPerStep = kWarps * kKeysPerWarp;  // of a block
  static constexpr int kChunk = kBatch * kKeysPerStep;        // keys a block has under way
  static constexpr int kMaxSplits = 128;                      // of the grid
  static constexpr int kLoads =
      (kHeadSize + kLanes * kVector - 1) / (kLanes * kVector);  // vectors that a lane loads of a row
  static constexpr int kPart = kLoads * kVector;                // columns of a lane, padding included

  static_assert(32 % kLanes == 0 && kHeadSize % kVector == 0, "lanes share a row in whole vectors");
  static_assert(kBatch >= 1, "keys of a lane");

  // Where value i of a lane's part lies in a row, counted from the lane's first.
  static constexpr __device__ __forceinline__ int column_of(int i) {
    return i / kVector * (kLanes * kVector) + i % kVector;
  }

  static __device__ __forceinline__ int first_column() { return static_cast<int>(threadIdx.x) % kLanes * kVector; }

  // True if value i of a lane's part lies within the row. Where the lanes cannot share a row evenly, some lack the last
  // vector; its values count as 0.
  static __device__ __forceinline__ bool in_row(int i) {
    return kPart * kLanes == kHeadSize || i < kPart - kVector || first_column() + column_of(i) < kHeadSize;
  }

  // A lane's part of a row: kLoads vectors, kLanes vectors apart; with the row's scale if the cache has scales.
  struct Part {
    Vector<Cache, kVector> vectors[kLoads];
    float scale;

    // `row` begins with the lane's first column.
    __device__ __forceinline__ void load(const Cache* row) {
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        if (!in_row(i * kVector)) {
          continue;
        }
        if constexpr (kAligned) {
          vectors[i] = load_vector<kVector>(row + i * kLanes * kVector);
        } else {
#pragma unroll
          for (int e = 0; e < kVector; ++e) {
            set_element(vectors[i], e, row[i * kLanes * kVector + e]);
          }
        }
      }
    }
    __device__ __forceinline__ void widen_to(float (&out)[kPart]) const {
#pragma unroll
      for (int i = 0; i < kPart; i += kVector) {
        const Vector<float, kVector> values = widen(vectors[i / kVector]);
#pragma unroll
        for (int e = 0; e < kVector; ++e) {
          out[i + e] = values.element[e];
        }
      }
    }
  };

  // A lane's part of the queries, scaled so that scores are in units of log2.
  template <typename Storage>
  static __device__ __forceinline__ void load_queries(float (&query)[kGroup][kPart], const Storage* __restrict__ q) {
    constexpr int kMost = 16 / static_cast<int>(sizeof(Storage));
    constexpr int kWidth = kVector < kMost ? kVector : kMost;
    const float scale = kLog2E / sqrtf(static_cast<float>(kHeadSize));
#pragma unroll
    for (int h = 0; h < kGroup; ++h) {
#pragma unroll
      for (int i = 0; i < kPart; i += kWidth) {
        Vector<Storage, kWidth> values = {};
        if (in_row(i)) {
          values = load_vector<kWidth>(q + h * kHeadSize + first_column() + column_of(i));
        }
#pragma unroll
        for (int e = 0; e < kWidth; ++e) {
          query[h][i + e] = to_float(values.element[e]) * scale;
        }
      }
    }
  }

  // Attention of one query head over some of the keys: a lane's columns of what V was summed to.
  struct Head {
    OnlineSoftmax softmax = OnlineSoftmax::empty();
    float sum[kPart] = {};

    __device__ __forceinline__ void raise(float score) {
      const float factor = softmax.raise(score);
#pragma unroll
      for (int i = 0; i < kPart; ++i) {
        sum[i] *= factor;
      }
    }

    // Joins the states of the lanes that hold the same columns; all of them get the result.
    __device__ __forceinline__ void join_lanes() {
      raise(lanes_reduce<Max, kPtx, kKeysPerWarp, kLanes>(softmax.maximum));
      softmax.sum = lanes_reduce<Sum, kPtx, kKeysPerWarp, kLanes>(softmax.sum);
#pragma unroll
      for (int i = 0; i < kPart; ++i) {
        sum[i] = lanes_reduce<Sum, kPtx, kKeysPerWarp, kLanes>(sum[i]);
      }
    }
  };

  // Reads up to kBatch rows, those of keys `key`, `key` + kKeysPerStep, … below `end`, and their scales; others stay
  // what they were. Rows are `step` elements apart, scales `scale_step`.
  static __device__ __forceinline__ void load_batch(Part (&parts)[kBatch], const Cache* row, long long step,
                                                    const float* scale, int scale_step, int key, int end) {
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      if (key + b * kKeysPerStep < end) {
        parts[b].load(row);
        if constexpr (kScaled) {
          parts[b].scale = scale[b * scale_step];
        }
      }
      row += step;
    }
  }

  // The heads' scores of a batch of keys.
  static __device__ __forceinline__ void score_batch(float (&score)[kGroup][kBatch],
                                                     const float (&query)[kGroup][kPart], const Part (&keys)[kBatch],
                                                     int key, int end) {
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      float row[kPart];
      keys[b].widen_to(row);
#pragma unroll
      for (int h = 0; h < kGroup; ++h) {
        float dot = 0.0f;
#pragma unroll
        for (int i = 0; i < kPart; ++i) {
          dot += query[h][i] * row[i];
        }
        dot = lanes_reduce<Sum, kPtx, kLanes, 1>(dot);
        if constexpr (kScaled) {
          dot *= keys[b].scale;
        }
        score[h][b] = key + b * kKeysPerStep < end ? dot : no_score();
      }
    }
  }

  // Takes a batch into the heads' states.
  static __device__ __forceinline__ void attend_batch(Head (&heads)[kGroup], const float (&score)[kGroup][kBatch],
                                                      const Part (&values)[kBatch]) {
#pragma unroll
    for (int h = 0; h < kGroup; ++h) {
      float largest = score[h][0];
#pragma unroll
      for (int b = 1; b < kBatch; ++b) {
        largest = fmaxf(largest, score[h][b]);
      }
      heads[h].raise(largest);
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      float row[kPart];
      values[b].widen_to(row);
#pragma unroll
      for (int h = 0; h < kGroup; ++h) {
        const float weight = power_of_2(score[h][b] - heads[h].softmax.maximum);
        heads[h].softmax.sum += weight;
        const float factor = kScaled ? weight * values[b].scale : weight;
#pragma unroll
        for (int i = 0; i < kPart; ++i) {
          heads[h].sum[i] += factor * row[i];
        }
      }
    }
  }

  // A thread's four values of a row of all the block's query heads.
  using Quad = Vector<float, 4>;
  static constexpr int kQuads = kGroup * kHeadSize / 4;
  static constexpr int kStoredQuads = sizeof(typename C::Output) > 1
                                          ? kQuads
                                          : (kQuads + 31) / 32 * 32;  // lanes round blocks together
  using Output = RowOutput<typename C::Output, false, true, 4, 32>;
  static constexpr int kShares = kThreads < kQuads ? 1 : kThreads / kQuads < kWarps ? kThreads / kQuads : kWarps;
  static constexpr int kLimit = kWarps > kMaxSplits ? kWarps : kMaxSplits;

  // Where states and sums of a block's warps, later those of the splits, are joined.
  struct Workplace {
    OnlineSoftmax states[kGroup][kWarps];
    OnlineSoftmax whole[kGroup];
    float weights[kGroup][kLimit];
    alignas(16) float sums[kWarps][kGroup * kHeadSize];
  };

  // Joins `count` states of each query head, `stride` states from one head's to the next's; `work` gets whole and
  // weights.
  template <int LIMIT, typename States>
  static __device__ __forceinline__ void join_heads(Workplace& work, const States& states, int stride, int count) {
    for (int h = static_cast<int>(threadIdx.x) / 32; h < kGroup; h += kWarps) {
      const OnlineSoftmax whole = join_states<LIMIT, kPtx>(work.weights[h], states + h * stride, count);
      if (threadIdx.x % 32 == 0) {
        work.whole[h] = whole;
      }
    }
    __syncthreads();
  }

  static __device__ __forceinline__ void add_to(Quad& total, const Quad& row, float weight) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      total.element[e] += weight * row.element[e];
    }
  }

  // Some splits' sums in one quad, for a thread that takes every kShares-th split.
  static constexpr int kAhead = 16;
  struct Rows {
    Quad rows[kAhead];

    // Splits `first`, `first` + kShares, … below `count`; `sums` are those of split 0 in the quad.
    __device__ __forceinline__ void load(const float* sums, long long stride, int first, int count) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (first + i * kShares < count) {
          rows[i] = load_written<4>(sums + (first + i * kShares) * stride);
        }
      }
    }
    __device__ __forceinline__ void add_weighted(Quad& total, const float* weights, int first, int count) const {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (first + i * kShares < count) {
          add_to(total, rows[i], weights[first + i * kShares]);
        }
      }
    }
  };

  // Of the block's query heads; quads of kStoredQuads that there are not store nothing.
  static __device__ __forceinline__ void store_out(Output& out, const Workplace& work, const Quad& total, int quad) {
    const float normaliser = work.whole[quad < kQuads ? quad * 4 / kHeadSize : 0].normaliser();
    float values[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      values[e] = total.element[e] * normaliser;
    }
    out.store(values, quad * 4, kQuads * 4);
  }

  // A lane's way through the cache: the batch of keys and values that it has under way.
  struct Walk {
    const Cache* k;  // of the lane's first key
    const Cache* v;
    const float* k_scale;
    const float* v_scale;
    long long stride;  // from one key to the next
    int scale_stride;
    int key;  // the lane's first
    Part keys[kBatch] = {};
    Part values[kBatch] = {};

    __device__ __forceinline__ Walk(const Cache* __restrict__ k_head, const Cache* __restrict__ v_head,
                                    const float* __restrict__ k_scales, const float* __restrict__ v_scales,
                                    int kv_stride, int begin, const AttentionShare& share)
        : k_scale(k_scales), v_scale(v_scales), stride(kv_stride), scale_stride(share.kv_heads) {
      const int lane = static_cast<int>(threadIdx.x) % 32;
      key = begin + static_cast<int>(threadIdx.x) / 32 * kKeysPerWarp + lane / kLanes;
      const long long place = key * stride + lane % kLanes * kVector;
      k = k_head + place;
      v = v_head + place;
      if constexpr (kScaled) {
        const long long scale = static_cast<long long>(key) * scale_stride + share.kv_head;
        k_scale += scale;
        v_scale += scale;
      }
    }
    __device__ __forceinline__ void load_keys(int end) {
      load_batch(keys, k, kKeysPerStep * stride, k_scale, kKeysPerStep * scale_stride, key, end);
    }
    __device__ __forceinline__ void load_values(int end) {
      load_batch(values, v, kKeysPerStep * stride, v_scale, kKeysPerStep * scale_stride, key, end);
    }
    __device__ __forceinline__ void advance() {
      key += kChunk;
      k += kChunk * stride;
      v += kChunk * stride;
      if constexpr (kScaled) {
        k_scale += kChunk * scale_stride;
        v_scale += kChunk * scale_stride;
      }
    }
  };

  // Takes in one more key, whose row and value stand in shared memory as floats, unscaled. Lanes that share the warp's
  // first key do; all lanes of the warp must take part.
  static __device__ __forceinline__ void attend_row(Head (&heads)[kGroup], const float (&query)[kGroup][kPart],
                                                    const float* key, const float* value) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int column = first_column();
#pragma unroll
    for (int h = 0; h < kGroup; ++h) {
      float dot = 0.0f;
#pragma unroll
      for (int i = 0; i < kPart; ++i) {
        dot += in_row(i) ? query[h][i] * key[column + column_of(i)] : 0.0f;
      }
      dot = lanes_reduce<Sum, kPtx, kLanes, 1>(dot);
      const float score = lane < kLanes ? dot : no_score();
      heads[h].raise(score);
      const float weight = power_of_2(score - heads[h].softmax.maximum);
      heads[h].softmax.sum += weight;
#pragma unroll
      for (int i = 0; i < kPart; ++i) {
        heads[h].sum[i] += in_row(i) ? weight * value[column + column_of(i)] : 0.0f;
      }
    }
  }

  // Leaves each warp's states and sums of keys `begin` … `end`-1 in the workplace; `walk`, a Walk or what does the
  // same, begins there and has its first keys and values. With `key`, a row of shared memory, that key and `value`
  // count, too.
  template <typename Way>
  static __device__ __forceinline__ void attend_range(Workplace& work, const float (&query)[kGroup][kPart], Way& walk,
                                                      int begin, int end, [[maybe_unused]] const float* key,
                                                      [[maybe_unused]] const float* value) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    Head heads[kGroup];
    // The next keys are on their way while these values are taken in, the next values during the next scores.
#pragma unroll 1
    for (int first = begin; first < end; first += kChunk) {
      float score[kGroup][kBatch];
      score_batch(score, query, walk.keys, walk.key, end);
      walk.advance();
      walk.load_keys(end);
      attend_batch(heads, score, walk.values);
      walk.load_values(end);
    }
    if constexpr (C::kNewest) {
      if (key != nullptr && warp == 0) {
        attend_row(heads, query, key, value);
      }
    }
#pragma unroll
    for (int h = 0; h < kGroup; ++h) {
      heads[h].join_lanes();
      if (lane < kLanes) {
#pragma unroll
        for (int i = 0; i < kPart; ++i) {
          if (in_row(i)) {
            work.sums[warp][h * kHeadSize + first_column() + column_of(i)] = heads[h].sum[i];
          }
        }
      }
      if (lane == 0) {
        work.states[h][warp] = heads[h].softmax;
      }
    }
    __syncthreads();
  }

  // Combines the partial results of `count` splits in their order. Loops over shares of the splits keep all threads
  // busy; their first sums are read before it is known what they weigh. States are read plainly: the fence at the end
  // of arrived_last has dropped what L1 held of them.
  static __device__ __forceinline__ void join_splits(Workplace& work, Output& out, const float* sums,
                                                     const OnlineSoftmax* states, int heads, int splits, int count) {
    const long long stride = static_cast<long long>(heads) * kHeadSize;
    const int thread = static_cast<int>(threadIdx.x);
    const int share = thread / kQuads;
    Rows rows;
    if (share < kShares) {
      rows.load(sums + thread % kQuads * 4, stride, share, count);
    }
    join_heads<kMaxSplits>(work, states, splits, count);
    for (int quad = thread % kQuads; quad < kQuads && share < kShares; quad += kThreads) {
      Quad total{};
      for (int first = share; first < count; first += kAhead * kShares) {
        if (quad >= kThreads || first != share) {
          rows.load(sums + quad * 4, stride, first, count);
        }
        rows.add_weighted(total, work.weights[quad * 4 / kHeadSize], first, count);
      }
      store_vector(work.sums[share] + quad * 4, total);
    }
    __syncthreads();
    for (int quad = thread; quad < kStoredQuads; quad += kThreads) {
      Quad total{};
      if (quad < kQuads) {
        total = load_vector<4>(work.sums[0] + quad * 4);
#pragma unroll
        for (int i = 1; i < kShares; ++i) {
          add_to(total, load_vector<4>(work.sums[i] + quad * 4), 1.0f);
        }
      }
      store_out(out, work, total, quad);
    }
  }

  // How `rows` rows of the cache are dealt out to splits: in `count` ranges of as many steps.
  struct Ranges {
    int rows;
    int steps;  // of a range
    int count;

    __device__ __forceinline__ Ranges(int all_rows, int splits) : rows(all_rows) {
      const int all = (rows + kKeysPerStep - 1) / kKeysPerStep;
      steps = (all + splits - 1) / splits;
      count = all == 0 ? 1 : (all + steps - 1) / steps;
    }
  };

  // The block's part of the context: rows from `begin` to before `end`. Splits behind the last range have nothing to
  // do.
  struct Range {
    int split;
    int count;
    int begin;
    int end;

    __device__ __forceinline__ Range(const Ranges& all, int of_split) : split(of_split), count(all.count) {
      const int length = all.steps * kKeysPerStep;
      begin = split * length;
      end = all.rows - begin < length ? all.rows : begin + length;
    }
    __device__ __forceinline__ Range(int rows, const AttentionShare& of) : Range(Ranges(rows, of.splits), of.split) {}
    __device__ __forceinline__ bool exists() const { return split < count; }
    __device__ __forceinline__ bool is_last() const { return split == count - 1; }
  };

  // Joins what the warps left in the workplace, then the splits, and stores the results of the block's query heads.
  // `partials` of splits·HEADS·(HEAD_DIM + 2) floats; `counters` of one int a key head, zero before and after.
  static __device__ __forceinline__ void finish(Workplace& work, const AttentionShare& share,
                                                typename C::Output* __restrict__ out, float* __restrict__ scales,
                                                float* partials, int* counters, int ranges) {
    const int kv_head = share.kv_head;
    const int split = share.split;
    const int splits = share.splits;
    const int first_column = kv_head * kGroup * kHeadSize;
    const int heads = share.kv_heads * kGroup;
    join_heads<kWarps>(work, work.states[0], kWarps, kWarps);
    float* sums = partials;  // [splits, HEADS, HEAD_DIM], behind them the states [HEADS, splits]
    OnlineSoftmax* states =
        reinterpret_cast<OnlineSoftmax*>(sums + static_cast<long long>(splits) * heads * kHeadSize) +
        kv_head * kGroup * splits;
    const bool alone = ranges == 1;
    Output output(out + first_column, scales + first_column / 32, 0, 1, kGroup * kHeadSize);
    for (int quad = static_cast<int>(threadIdx.x); quad < kStoredQuads; quad += kThreads) {
      Quad total{};
      if (quad < kQuads) {
#pragma unroll
        for (int warp = 0; warp < kWarps; ++warp) {
          add_to(total, load_vector<4>(work.sums[warp] + quad * 4), work.weights[quad * 4 / kHeadSize][warp]);
        }
      }
      if (alone) {
        store_out(output, work, total, quad);
      } else if (quad < kQuads) {
        store_vector(sums + static_cast<long long>(split) * heads * kHeadSize + first_column + quad * 4, total);
        if (quad * 4 % kHeadSize == 0) {
          const int head = quad * 4 / kHeadSize;
          states[head * splits + split] = work.whole[head];
        }
      }
    }
    if (!alone && arrived_last(counters + kv_head, ranges)) {
      join_splits(work, output, sums + first_column, states, heads, splits, ranges);
    }
  }
};
