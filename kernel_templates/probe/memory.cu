// How fast memory is read through L2 and how fast it is copied, and how long a load takes whose address is the value
// that the one before read. All loads pass L1 by.
//
// cached_read: every block reads the first `count` (a power of two) fours of floats again and again, in all
//   256 · rounds of each thread, each block from another place on.
// read: all `count` fours of floats once. copy: writes them to `to`.
// chase: follows `steps` (a multiple of 16) addresses, one at each address, after `warm` of them before the clock
//   starts, from `first` on.
// Requires: pointers aligned to 16 bytes; values of zero to be read; `spans` and `places` as clocks.cuh says; `sums` of
//   one value, which is never written.
// Launch: any grid, block BLOCK_THREADS; of chase, one block of one thread.

#include "clocks.cuh"

#ifndef BLOCK_THREADS
#define BLOCK_THREADS 512  // threads of a block
#endif

namespace {

constexpr int kThreads = BLOCK_THREADS;
constexpr int kLoads = 8;  // that a thread has under way
constexpr int kLoadsOfRound = 256;
constexpr int kLoadsOfChase = 16;  // in a round

static_assert(kThreads % 32 == 0 && kThreads <= 1024, "a block is whole warps");

__device__ __forceinline__ float sum_of(const float4 (&values)[kLoads]) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    sum += values[i].x + values[i].y + values[i].z + values[i].w;
  }
  return sum;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    cached_read(const float4* from, float* sums, long long* spans, int* places, int rounds, int count) {
  const unsigned mask = static_cast<unsigned>(count) - 1;
  unsigned at = blockIdx.x * 8191U * 32U + threadIdx.x;
  float sum = 0;
  const long long begin = start_clock();
#pragma unroll 1
  for (int load = 0; load < rounds * kLoadsOfRound; load += kLoads) {
    float4 values[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      values[i] = __ldcg(from + (at & mask));
      at += kThreads;
    }
    sum += sum_of(values);
  }
  stop_clock(begin, spans, places);
  if (sum != 0) {
    sums[0] = sum;  // never, as all are zero
  }
}

extern "C" __global__ void __launch_bounds__(kThreads) read(const float4* from, float* sums, long long count) {
  const long long stride = static_cast<long long>(gridDim.x) * kThreads;
  float sum = 0;
  for (long long at = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x; at < count; at += kLoads * stride) {
    float4 values[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      values[i] = at + i * stride < count ? __ldcg(from + at + i * stride) : make_float4(0, 0, 0, 0);
    }
    sum += sum_of(values);
  }
  if (sum != 0) {
    sums[0] = sum;  // never, as all are zero
  }
}

extern "C" __global__ void __launch_bounds__(kThreads) copy(const float4* from, float4* to, long long count) {
  const long long stride = static_cast<long long>(gridDim.x) * kThreads;
  for (long long at = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x; at < count; at += kLoads * stride) {
    float4 values[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      values[i] = at + i * stride < count ? __ldcg(from + at + i * stride) : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (at + i * stride < count) {
        to[at + i * stride] = values[i];
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(32) chase(const unsigned long long* first, unsigned long long* last,
                                                       long long* spans, int* places, int warm, int steps) {
  const unsigned long long* at = first;
#pragma unroll 1
  for (int step = 0; step < warm; ++step) {
    at = reinterpret_cast<const unsigned long long*>(__ldcg(at));
  }
  const long long begin = start_clock();
#pragma unroll 1
  for (int step = 0; step < steps; step += kLoadsOfChase) {
#pragma unroll
    for (int i = 0; i < kLoadsOfChase; ++i) {
      at = reinterpret_cast<const unsigned long long*>(__ldcg(at));
    }
  }
  stop_clock(begin, spans, places);
  last[0] = reinterpret_cast<unsigned long long>(at);
}
