// scores[KV_HEADS, ceil(QUERIES / BLOCK), ceil(KEYS / BLOCK)]: how likely each block of BLOCK queries needs each block
// of keys: the mean of the queries, over the block and the query heads that read the key head, times the mean of the
// keys, means[ceil(KEYS / BLOCK), KV_HEADS, HEAD_DIM]. Queries are the last QUERIES of `length` rows; blocks of keys
// that end at or behind a block's first query have no mean and the score 0. `length` lies in device memory: a captured
// launch serves a growing context. It is held to QUERIES … KEYS.
//
// q[QUERIES, HEADS, HEAD_DIM] is STORAGE, means and scores are float32. Sums in float32.
// FLOPs: 2·HEAD_DIM for each score, and an addition for each element of q. Bytes: q, means and scores.
// Requires: pointers aligned to 16 bytes; KEYS at least QUERIES; BLOCK at least 1.
// Launch: grid (KV_HEADS, ceil(QUERIES / BLOCK), ceil(ceil(KEYS / BLOCK) / KEY_BLOCKS)), block THREADS.
//
// Each block of threads adds up the queries, which is little work; then a warp takes a block of keys at a time, its
// lanes lying along the head.

#include "common/reduce.cuh"
#include "common/types.cuh"

namespace {

constexpr int kWarps = kThreads / 32;
constexpr int kShares = kThreads > kHeadSize ? kThreads / kHeadSize : 1;  // of the queries
constexpr int kStep = kThreads > kHeadSize ? kHeadSize : kThreads;        // columns at a time

static_assert(kThreads % 32 == 0, "whole warps");
static_assert(kKeyBlocks >= 1 && kUnroll >= 1, "counts");

// Leaves the mean of `count` heads of q in `mean`; head i is `index_of(i)` heads behind the first of q.
template <typename IndexOf>
__device__ __forceinline__ void mean_of_queries(float* mean, float* sums, const STORAGE* __restrict__ q, int count,
                                                IndexOf index_of) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int column = thread % kStep; column < kHeadSize; column += kStep) {
    float sum = 0.0f;
    for (int i = thread / kStep; i < count; i += kShares * kUnroll) {
      float values[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int at = i + u * kShares;
        values[u] = at < count ? to_float(q[index_of(at) * kHeadSize + column]) : 0.0f;
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        sum += values[u];
      }
    }
    if constexpr (kShares > 1) {
      sums[thread] = sum;
      __syncthreads();
      if (thread < kStep) {
#pragma unroll
        for (int i = 1; i < kShares; ++i) {
          sum += sums[thread + i * kStep];
        }
      }
    }
    if (thread < kStep) {
      mean[column] = sum / static_cast<float>(count);
    }
  }
  __syncthreads();
}

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    score_blocks(const STORAGE* __restrict__ q, const float* __restrict__ means, const int* __restrict__ length,
                 float* __restrict__ scores, int heads, int queries, int keys, int block) {
  __shared__ float mean[kHeadSize];
  __shared__ float sums[kThreads];
  const int kv_head = static_cast<int>(blockIdx.x);
  const int kv_heads = static_cast<int>(gridDim.x);
  const int group = heads / kv_heads;
  const int first_query = static_cast<int>(blockIdx.y) * block;
  const int count = queries - first_query < block ? queries - first_query : block;
  const STORAGE* own = q + (static_cast<long long>(first_query) * heads + kv_head * group) * kHeadSize;
  mean_of_queries(mean, sums, own, count * group,
                  [&](int i) { return static_cast<long long>(i / group) * heads + i % group; });
  const int rows = *length < queries ? queries : *length < keys ? *length : keys;
  const int candidates = (rows - queries + first_query) / block;
  const int key_blocks = (keys + block - 1) / block;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int begin = static_cast<int>(blockIdx.z) * kKeyBlocks;
  const int end = begin + kKeyBlocks < key_blocks ? begin + kKeyBlocks : key_blocks;
  float* out = scores + (static_cast<long long>(kv_head) * gridDim.y + blockIdx.y) * key_blocks;
  for (int key = begin + static_cast<int>(threadIdx.x) / 32; key < end; key += kWarps) {
    float dot = 0.0f;
    if (key < candidates) {
      const float* row = means + (static_cast<long long>(key) * kv_heads + kv_head) * kHeadSize;
#pragma unroll
      for (int column = lane; column < kHeadSize; column += 32) {
        dot += mean[column] * row[column];
      }
    }
    dot = warp_reduce<Sum, kReducePtx>(dot);
    if (lane == 0) {
      out[key] = dot;
    }
  }
}

#else

// The same in float64. Launch: grid (KV_HEADS, ceil(QUERIES / BLOCK)), block 128.
extern "C" __global__ void score_blocks_reference(const STORAGE* __restrict__ q, const float* __restrict__ means,
                                                  const int* __restrict__ length, double* __restrict__ scores,
                                                  int heads, int queries, int keys, int block) {
  const int kv_head = static_cast<int>(blockIdx.x);
  const int kv_heads = static_cast<int>(gridDim.x);
  const int group = heads / kv_heads;
  const int first = static_cast<int>(blockIdx.y) * block;
  const int end = first + block < queries ? first + block : queries;
  const int rows = *length < queries ? queries : *length < keys ? *length : keys;
  const int key_blocks = (keys + block - 1) / block;
  for (int key = static_cast<int>(threadIdx.x); key < key_blocks; key += 128) {
    double score = 0.0;
    for (int d = 0; d < HEAD_SIZE && key < (rows - queries + first) / block; ++d) {
      double mean = 0.0;
      for (int row = first; row < end; ++row) {
        for (int h = kv_head * group; h < (kv_head + 1) * group; ++h) {
          mean += to_float(q[(static_cast<long long>(row) * heads + h) * HEAD_SIZE + d]);
        }
      }
      mean /= (end - first) * group;
      score += mean * means[(static_cast<long long>(key) * kv_heads + kv_head) * HEAD_SIZE + d];
    }
    scores[(static_cast<long long>(kv_head) * gridDim.y + blockIdx.y) * key_blocks + key] = score;
  }
}

#endif
