// How fast an SM does dp4a: x = x·x + x, four bytes at a time, reads one register, so that no two are in one register
// bank. Code for sm_61 and newer has it.
//
// Operations of dp4a_rate: 8 · 256 · rounds of each thread.
// Requires: `start` of 0; `spans` and `places` as clocks.cuh says; `sums` of one value, which is never written.
// Launch: any grid, block any number of warps up to 1024 threads.

#include "../common/dot4.cuh"
#include "clocks.cuh"

namespace {

constexpr int kThreads = 1024;
constexpr int kChains = 8;             // that do not wait for each other
constexpr int kSteps = 256 / kChains;  // of each chain in a round

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    dp4a_rate(int* sums, long long* spans, int* places, int rounds, int start) {
  int x[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) {
    x[i] = start * (i + 1);
  }
  const long long begin = start_clock();
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < kChains; ++i) {
        x[i] = dot4(x[i], x[i], x[i]);
      }
    }
  }
  stop_clock(begin, spans, places);
  int sum = 0;
#pragma unroll
  for (int i = 0; i < kChains; ++i) {
    sum |= x[i];
  }
  if (sum != 0) {
    sums[0] = sum;  // never, as all began at zero
  }
}
