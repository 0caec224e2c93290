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

// Which of two blocks arrives first at a counter: true in that one. All threads must take part.
__device__ __forceinline__ bool arrived_first(int* counter) {
  __shared__ int before;
  if (threadIdx.x == 0) {
    before = atomicAdd(counter, 1);
  }
  __syncthreads();
  return before == 0;
}

// In the block that arrived first: says that what it wrote since may be read.
__device__ __forceinline__ void hand_over(int* counter) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(counter, 2);
  }
}

// In the block that arrived second: waits for `hand_over` of the other, which runs already and waits for nobody, and
// leaves the counter at zero.
__device__ __forceinline__ void take_over(int* counter) {
  if (threadIdx.x == 0) {
    while (atomicAdd(counter, 0) != 4) {
    }
    *counter = 0;
  }
  __syncthreads();
  __threadfence();
}
