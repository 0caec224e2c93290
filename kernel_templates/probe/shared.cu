// How fast an SM reads its shared memory, and how long a load takes whose address is what the one before read.
//
// Bytes of shared_rate: 16 · 32 · rounds of each thread, neighbouring threads reading neighbouring 16 bytes: no bank of
// shared memory is asked twice for what one warp reads at a time. Loads of shared_latency: 64 · rounds.
// Requires: `spans` and `places` as clocks.cuh says; `sums` of one value, which is never written.
// Launch: any grid, block 1024 threads; of shared_latency, one block of 32.

#include "clocks.cuh"

namespace {

constexpr int kThreads = 1024;
constexpr int kFloats = 8192;      // of shared memory, 32 KiB
constexpr int kLoads = 32;         // in a round
constexpr int kLinks = 1024;       // of the chain that shared_latency follows
constexpr int kLoadsOfChain = 64;  // in a round

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    shared_rate(float* sums, long long* spans, int* places, int rounds) {
  __shared__ float4 values[kFloats / 4];
  for (int i = threadIdx.x; i < kFloats / 4; i += blockDim.x) {
    values[i] = make_float4(0, 0, 0, 0);
  }
  float4 sum = make_float4(0, 0, 0, 0);
  int at = threadIdx.x;
  const long long begin = start_clock();
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const float4 value = values[at + 32 * i];
      sum.x += value.x;
      sum.y += value.y;
      sum.z += value.z;
      sum.w += value.w;
    }
    at ^= 32;  // else the loads would be taken out of the loop
  }
  stop_clock(begin, spans, places);
  if (sum.x + sum.y + sum.z + sum.w != 0) {
    sums[0] = sum.x;  // never, as all are zero
  }
}

extern "C" __global__ void __launch_bounds__(32) shared_latency(int* sums, long long* spans, int* places, int rounds) {
  __shared__ int links[kLinks];  // each the place, in bytes, of the next
  for (int i = threadIdx.x; i < kLinks; i += blockDim.x) {
    links[i] = static_cast<int>(sizeof(int)) * ((i + 33) % kLinks);
  }
  int at = 0;  // the same in all threads: one word is read
  const long long begin = start_clock();
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kLoadsOfChain; ++i) {
      at = *reinterpret_cast<const int*>(reinterpret_cast<const char*>(links) + at);
    }
  }
  stop_clock(begin, spans, places);
  if (at < 0) {
    sums[0] = at;  // never
  }
}
