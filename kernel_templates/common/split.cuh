#pragma once

// True in the block that arrives last of `count` at a counter, which it leaves at zero for the next launch; what the
// others wrote before they arrived is then visible (through load_written). All threads must take part.
__device__ __forceinline__ bool arrived_last(int* counter, int count) {
  __shared__ int last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1) == count - 1 ? 1 : 0;
    if (last != 0) {
      *counter = 0;
    }
  }
  __syncthreads();
  __threadfence();
  return last != 0;
}
