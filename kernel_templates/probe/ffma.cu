// How fast an SM does FFMA, and how long it takes until a result may be used: x = x·2^-100 + x reads one register, so
// that no two are in one register bank, and leaves x as it is.
//
// FLOPs of ffma_rate: 2 · 256 · rounds of each thread. Multiply-adds of ffma_latency: 256 · rounds, in turn.
// Requires: `start` above 0; `spans` and `places` as clocks.cuh says; `sums` of one value, which is never written.
// Launch: any grid, block any number of warps up to 1024 threads; of ffma_latency, one block of 32 threads.

#include "clocks.cuh"

namespace {

constexpr int kThreads = 1024;
constexpr int kChains = 8;             // that do not wait for each other
constexpr int kSteps = 256 / kChains;  // of each chain in a round
constexpr float kTiny = 0x1p-100f;     // too little to change x; fits into the instruction

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    ffma_rate(float* sums, long long* spans, int* places, int rounds, float start) {
  float x[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) {
    x[i] = start + static_cast<float>(i);
  }
  const long long begin = start_clock();
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < kChains; ++i) {
        x[i] = fmaf(x[i], kTiny, x[i]);
      }
    }
  }
  stop_clock(begin, spans, places);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kChains; ++i) {
    sum += x[i];
  }
  if (sum < 0) {
    sums[0] = sum;  // never, as all began above zero: but the compiler does not know
  }
}

extern "C" __global__ void __launch_bounds__(32)
    ffma_latency(float* sums, long long* spans, int* places, int rounds, float start) {
  float x = start;
  const long long begin = start_clock();
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int step = 0; step < 256; ++step) {
      x = fmaf(x, kTiny, x);
    }
  }
  stop_clock(begin, spans, places);
  if (x < 0) {
    sums[0] = x;  // never
  }
}
