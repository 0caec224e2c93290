// The sum of a value over a block of `Block` threads, a multiple of 32; thread 0 gets it.
#pragma once

template <int Block, typename Element>
__device__ __forceinline__ Element block_sum(Element value) {
  __shared__ Element partial[Block / 32];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  __syncthreads();  // until thread 0 has read the parts of the sum before
  if (threadIdx.x % 32 == 0) {
    partial[threadIdx.x / 32] = value;
  }
  __syncthreads();
  Element sum = 0;
#pragma unroll
  for (int warp = 0; warp < Block / 32; ++warp) {
    sum += partial[warp];
  }
  return sum;
}
