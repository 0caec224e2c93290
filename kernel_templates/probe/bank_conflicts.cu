// Rounds of multiply-adds on registers alone, c[i] = a[j]·b[k] + c[i], some of which read two or three registers of one
// bank. The probe measures what that costs.
//
// Operands are read from memory sixteen bytes at a time, which takes four neighbouring registers, the first of them a
// multiple of four. So where registers are in bank number modulo 4, element i of a fourth is in bank i. Whether the
// compiler leaves them there is for the reader of machine code to say, not for this file.
//
// Every variant has the same loop, as many multiply-adds, operands and loads. Each a, b and c is read once in 16
// multiply-adds: nothing is near enough to be kept from one to the next, and only the one 16 before is waited for.
//
// Bytes: next to none. FLOPs: 2 · 256 · rounds of each thread.
// Requires: `operands` of 48 floats and `sums` of 16, aligned to 16 bytes; `spans` of two a block, `places` of one: see
// clocks.cuh.
// Launch: any grid, block BLOCK_THREADS.

#include "clocks.cuh"

#ifndef BLOCK_THREADS
#define BLOCK_THREADS 512  // threads of a block
#endif
#ifndef PAIRS
#define PAIRS 0  // of 64 fours of multiply-adds, how many read two registers of one bank
#endif
#ifndef TRIPLES
#define TRIPLES 0  // of 64 fours of multiply-adds, how many read three registers of one bank
#endif
#ifndef ORDER
#define ORDER 0  // which of the fours, and which operands of theirs are in one bank
#endif

namespace {

constexpr int kThreads = BLOCK_THREADS;
constexpr int kPairs = PAIRS;
constexpr int kTriples = TRIPLES;
constexpr int kOrder = ORDER;

constexpr int kOperands = 16;  // of each of a, b and c
constexpr int kFours = 64;     // in a round of the loop
constexpr int kFoursOfOperands = kOperands / 4;

static_assert(kThreads % 32 == 0 && kThreads <= 1024, "a block is whole warps");
static_assert(kPairs >= 0 && kTriples >= 0 && kPairs + kTriples <= kFours, "parts of all fours");
static_assert(kOrder >= 0 && kOrder < 16, "a known order");

// The one of 64 places that a four has: neighbours are far apart, so that those with conflicts are spread evenly.
__device__ constexpr int place_of(int four) { return (four * 23 + kOrder * 17) % kFours; }
// How many banks further than that of c those of a and b are.
__device__ constexpr int banks_to_a(int four) {
  const int place = place_of(four);
  const bool is_pair = place >= kTriples && place < kTriples + kPairs;
  return place < kTriples || (is_pair && (place + kOrder) % 3 == 0) ? 0 : 1;
}
__device__ constexpr int banks_to_b(int four) {
  const int place = place_of(four);
  const bool is_pair = place >= kTriples && place < kTriples + kPairs;
  return place < kTriples || (is_pair && (place + kOrder) % 3 == 1) ? 0 : is_pair && (place + kOrder) % 3 == 2 ? 1 : 2;
}

__device__ __forceinline__ void multiply_add(int four, const float (&a)[kOperands], const float (&b)[kOperands],
                                             float (&c)[kOperands]) {
  const int first = 4 * (four % kFoursOfOperands);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    // As a product and a sum, the products would be taken out of the loop.
    c[first + i] = fmaf(a[first + (i + banks_to_a(four)) % 4], b[first + (i + banks_to_b(four)) % 4], c[first + i]);
  }
}

__device__ __forceinline__ void read_operands(float (&to)[kOperands], const float* from) {
#pragma unroll
  for (int i = 0; i < kOperands; i += 4) {
    const float4 four = *reinterpret_cast<const float4*>(from + i);
    to[i] = four.x;
    to[i + 1] = four.y;
    to[i + 2] = four.z;
    to[i + 3] = four.w;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    bank_conflicts(const float* operands, float* sums, long long* spans, int* places, int rounds) {
  float a[kOperands];
  float b[kOperands];
  float c[kOperands];
  read_operands(a, operands);
  read_operands(b, operands + kOperands);
  read_operands(c, operands + 2 * kOperands);
  const long long begin = start_clock();
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int four = 0; four < kFours; ++four) {
      multiply_add(four, a, b, c);
    }
  }
  stop_clock(begin, spans, places);
#pragma unroll
  for (int i = 0; i < kOperands; i += 4) {
    *reinterpret_cast<float4*>(sums + i) = make_float4(c[i], c[i + 1], c[i + 2], c[i + 3]);
  }
}
