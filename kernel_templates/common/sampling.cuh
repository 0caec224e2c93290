#pragma once

// Logits as ranks and as masses for choosing a token. All of it is integers, and single operations of float32 rounded
// to nearest, so that every processor gets the same bits.

using Wide = unsigned long long;

constexpr float kColdest = 1.0f / 1048576.0f;  // a temperature below it is none: the largest logit is taken
constexpr float kHottest = 1048576.0f;

// A token's place in the order: by logit, equal ones by lower id. 0 is below them all.
__device__ __forceinline__ Wide rank_of(float logit, int id) {
  const unsigned int bits = logit == 0.0f ? 0u : __float_as_uint(logit);  // -0 is 0
  const unsigned int key = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return static_cast<Wide>(key) << 32 | ~static_cast<unsigned int>(id);
}
__device__ __forceinline__ int id_of(Wide rank) { return static_cast<int>(~static_cast<unsigned int>(rank)); }
__device__ __forceinline__ float logit_of(Wide rank) {
  const unsigned int key = static_cast<unsigned int>(rank >> 32);
  return __uint_as_float((key & 0x80000000u) != 0 ? key & 0x7fffffffu : ~key);
}

// Divides a logit by the temperature: log2 of the token's mass, times 2^24.
struct Warmth {
  float scale;

  __device__ __forceinline__ explicit Warmth(float temperature)
      : scale(__fdiv_rn(1.44269504f, fminf(temperature, kHottest))) {}
  __device__ __forceinline__ long long power(float logit) const {
    constexpr float kFar = 536870912.0f;
    const float exponent = fminf(fmaxf(__fmul_rn(logit, scale), -kFar), kFar);
    return __float2ll_rn(__fmul_rn(exponent, 16777216.0f));
  }
};

constexpr int kMassBits = 23;
// Tokens whose mass has the same exponent form a bin; bin 0 is that of the largest logit, and behind the last one
// masses are too small to count.
constexpr int kBins = 43;

__device__ __forceinline__ int exponent_of(long long power) { return static_cast<int>(power >> 24); }

// 2^fraction in 23 bits, from 2^22 to 2^23 - 1, within 4e-7.
__device__ __forceinline__ unsigned int mass_of(long long power) {
  const unsigned int x = static_cast<unsigned int>(power) << 8;
  unsigned int sum = 3840493u;  // (2^x - 1) / x in 31 bits
  sum = 19755534u + __umulhi(sum, x);
  sum = 119522614u + __umulhi(sum, x);
  sum = 515841022u + __umulhi(sum, x);
  sum = 1488523067u + __umulhi(sum, x);
  const unsigned int mass = (1u << 22) + (__umulhi(sum, x) >> 9);
  return mass < (1u << 23) ? mass : (1u << 23) - 1;
}

// A number of tokens and the sum of their masses in one integer. 2^20 tokens fit.
constexpr int kSumBits = kMassBits + 20;
__device__ __forceinline__ Wide packed(unsigned int tokens, Wide mass) {
  return static_cast<Wide>(tokens) << kSumBits | mass;
}
__device__ __forceinline__ Wide tokens_in(Wide pack) { return pack >> kSumBits; }
// Of tokens in `bin`, in units that all bins share.
__device__ __forceinline__ Wide weight_in(Wide pack, int bin) { return pack << (64 - kSumBits) >> 1 >> bin; }

// The 64 bits of draw number `step`: the first two words of Philox-4x32-10 (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", 2011).
__device__ __forceinline__ Wide philox(Wide seed, Wide step) {
  unsigned int c0 = static_cast<unsigned int>(step);
  unsigned int c1 = static_cast<unsigned int>(step >> 32);
  unsigned int c2 = 0;
  unsigned int c3 = 0;
  unsigned int k0 = static_cast<unsigned int>(seed);
  unsigned int k1 = static_cast<unsigned int>(seed >> 32);
#pragma unroll 1
  for (int round = 0; round < 10; ++round) {
    const unsigned int low0 = 0xd2511f53u * c0;
    const unsigned int low2 = 0xcd9e8d57u * c2;
    const unsigned int high0 = __umulhi(0xd2511f53u, c0);
    const unsigned int high2 = __umulhi(0xcd9e8d57u, c2);
    c0 = high2 ^ c1 ^ k0;
    c1 = low2;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return static_cast<Wide>(c0) << 32 | c1;
}

// The smallest integer that is at least `share` (from 0 to below 1) of `whole` (up to 2^63), but at least 1.
__device__ __forceinline__ Wide share_of(float share, Wide whole) {
  const Wide part = share > 0.0f ? __float2ull_rn(__fmul_rn(share, 4294967296.0f)) : 0;
  const Wide target = (whole >> 32) * part + (((whole & 0xffffffffu) * part + 0xffffffffu) >> 32);
  return target > 0 ? target : 1;
}
