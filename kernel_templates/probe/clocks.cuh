#pragma once

// Clocks of a block on its SM, for kernels of the probe. What an SM counts says nothing of another SM's clocks.

// The SM that this thread runs on.
__device__ __forceinline__ int own_sm() {
#ifdef __CUDA_ARCH__
  int sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
#else
  return 0;
#endif
}

// The SM's clocks once all of the block are here.
__device__ __forceinline__ long long start_clock() {
  __syncthreads();
  return clock64();
}

// Once all of the block are here: writes `begin` and the SM's clocks now to `spans`, two of each block, and the SM to
// `places`, one of each.
__device__ __forceinline__ void stop_clock(long long begin, long long* spans, int* places) {
  __syncthreads();
  if (threadIdx.x == 0) {
    spans[2 * blockIdx.x] = begin;
    spans[2 * blockIdx.x + 1] = clock64();
    places[blockIdx.x] = own_sm();
  }
}
