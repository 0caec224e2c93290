#pragma once

// The projection behind a token's attention with a packed weight, as the second phase of a launch (common/tickets.cuh):
// what attention_projected_q and attention_layer_q share.

#include "awaited.cuh"
#include "packed_share.cuh"
#include "types.cuh"

// Rows of the weight, whose sums are added to x. `sums_memory`: two places of SUM_BYTES for those of an item. PART:
// columns of what attention gives that one block hands on, of which there are `parts`.
template <typename SHARE, typename STORAGE_TYPE, int PART, int SUM_BYTES>
struct PackedProjection {
  SHARE share;
  char* sums_memory;
  const STORAGE_TYPE* x;
  STORAGE_TYPE* c;
  int hidden;
  int parts;
  float residual = 0.0f;  // of the thread's row of the item

  __device__ __forceinline__ float* sums(int turn) const {
    return reinterpret_cast<float*>(sums_memory + turn * SUM_BYTES);
  }
  __device__ __forceinline__ bool wants(int item, int& row) const {
    row = item * SHARE::kItemRows + static_cast<int>(threadIdx.x);
    return static_cast<int>(threadIdx.x) < SHARE::kItemRows && row < hidden;
  }
  __device__ __forceinline__ void begin(int item) { share.begin(item); }
  template <typename Order>
  __device__ __forceinline__ void receive(const Order& /*order*/) const {
    wait_for_parts<32>(share.activations.values, parts, PART);
  }
  __device__ __forceinline__ void work(int item, int turn) {
    int row = 0;
    residual = wants(item, row) ? to_float(x[row]) : 0.0f;
    share.multiply(sums(turn), item);
  }
  __device__ __forceinline__ void finish(int item, int turn) const {
    int row = 0;
    if (wants(item, row)) {
      c[row] = from_float<STORAGE_TYPE>(residual + SHARE::total(sums(turn), static_cast<int>(threadIdx.x)));
    }
  }
};
