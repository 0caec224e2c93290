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

// Blocks that have a part of the same work each, PARTS of them, leave their parts and then share what is made of them
// all. `state` of one int, zero before and after a launch, counts in a byte each how many of them have begun, have left
// their part, do not wait for the others, and have seen that all parts are there. A block waits only if all of them
// have begun, so that nobody waits for a block that does not run; others leave the rest to those that wait, of which
// the one that began last is always one.
template <int PARTS>
struct Gathering {
  static_assert(PARTS < 128, "a byte counts them, the upper one below its sign");
  static constexpr int kBegun = 1;
  static constexpr int kLeft = 1 << 8;
  static constexpr int kGone = 1 << 16;
  static constexpr int kSeen = 1 << 24;

  int* state;
  int begun = 0;  // as far as known before the part was left; in thread 0

  __device__ __forceinline__ explicit Gathering(int* counter) : state(counter) {}

  // At the beginning of a block.
  __device__ __forceinline__ void begin() const {
    if (threadIdx.x == 0) {
      atomicAdd(state, kBegun);
    }
  }

  // Before the part is left, so that the answer is there behind it.
  __device__ __forceinline__ void look() {
    if (threadIdx.x == 0) {
      begun = *static_cast<const volatile int*>(state) & 0xff;
    }
  }

  // Behind the writes of the block's part: which share of what is left to do is the block's, the `index`-th of `count`,
  // or none if `count` is 0. All threads must take part.
  __device__ __forceinline__ void share(int& index, int& count) const {
    __shared__ int shared_index;
    __shared__ int shared_count;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      const bool waits = begun == PARTS;
      int now = atomicAdd(state, waits ? kLeft : kLeft + kGone);
      shared_index = byte(now, kLeft) - byte(now, kGone);
      now += kLeft;
      while (waits && byte(now, kLeft) < PARTS) {
        now = *static_cast<const volatile int*>(state);
      }
      shared_count = waits ? PARTS - byte(now, kGone) : 0;
      __threadfence();
    }
    __syncthreads();
    index = shared_index;
    count = shared_count;
  }

  // In a block that has a share.
  __device__ __forceinline__ void end(int count) const {
    if (threadIdx.x == 0 && byte(atomicAdd(state, kSeen), kSeen) == count - 1) {
      *state = 0;
    }
  }

 private:
  static __device__ __forceinline__ int byte(int counts, int unit) { return counts / unit & 0xff; }
};
