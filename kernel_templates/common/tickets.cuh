#pragma once

// Work of two phases in one launch, of which the second reads what all of the first gives: no barrier of the grid, so
// that no launch needs all of its blocks to run at the same time. Blocks draw items in their order, all of the first
// phase before any of the second. One that waits for the first phase has drawn of the second, so all items of the first
// were drawn before, by blocks that run and wait for nobody.
//
// `counters`: kTicketCounters ints, zero before and after a launch: items drawn, items of the first phase that are
// done, blocks that are through.

constexpr int kTicketCounters = 3;

// AHEAD: a block draws its next item when it begins one, else when it has read all of that.
template <bool AHEAD>
struct Tickets {
  int* counters;
  int first_phase;  // items of the first phase
  int items;        // of both

  // The block's next item, in thread 0; the others get 0.
  __device__ __forceinline__ int draw() const { return threadIdx.x == 0 ? atomicAdd(counters, 1) : 0; }

  __device__ __forceinline__ bool in_first(int item) const { return item < first_phase; }
  __device__ __forceinline__ bool exists(int item) const { return item < items; }

  // Says that so many items of the first phase are done, whose results the block's threads have written; all must take
  // part. Thread 0 fences for all of them (common/split.cuh).
  __device__ __forceinline__ void tell_done(int count) const {
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(counters + 1, count);
    }
  }

  // In a block that has drawn an item of the second phase: waits for the first; all threads must take part.
  __device__ __forceinline__ void wait_for_first() const {
    if (threadIdx.x == 0) {
      const volatile int* const done = counters + 1;
      while (*done != first_phase) {
      }
      __threadfence();
    }
    __syncthreads();
  }

  // By the thread that draws, with the last item that it drew, of which there is none: the last block leaves the
  // counters at zero. A block that draws no item ahead waits for nothing once it has drawn that.
  __device__ __forceinline__ void leave(int item) const {
    const int blocks = static_cast<int>(gridDim.x);
    const bool last = AHEAD ? atomicAdd(counters + 2, 1) == blocks - 1 : item == items + blocks - 1;
    if (last) {
      counters[0] = 0;
      counters[1] = 0;
      counters[2] = 0;
    }
  }
};
