#pragma once

// A fence of one thread behind a barrier holds for what all threads of its block wrote before the barrier, and a
// barrier behind its fence passes on what it may read then: as in the grid barrier of CUDA's cooperative groups. Fences
// of all threads say the same, and each takes a way to the L2 and back.

// True in the block that arrives last of `count` at a counter, which it leaves at zero for the next launch; what the
// others wrote before they arrived is then visible (through load_written). All threads must take part.
__device__ __forceinline__ bool arrived_last(int* counter, int count) {
  __shared__ int last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(counter, 1) == count - 1 ? 1 : 0;
    if (last != 0) {
      __threadfence();  // before the store below, which it would wait for
      *counter = 0;
    }
  }
  __syncthreads();
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
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(counter, 2);
  }
}

// In the block that arrived second: waits for `hand_over` of the other, which runs already and waits for nobody, and
// leaves the counter at zero.
__device__ __forceinline__ void take_over(int* counter) {
  if (threadIdx.x == 0) {
    while (atomicAdd(counter, 0) != 4) {
    }
    __threadfence();
    *counter = 0;
  }
  __syncthreads();
}
