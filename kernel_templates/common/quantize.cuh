#pragma once

#include "types.cuh"

// Activations as int8 with a scale: that of the largest magnitude over 127. All steps are single float32 operations, so
// that other processors get the same integers.

struct Int8Scale {
  float scale;    // NaN or infinity where a value is
  float inverse;  // 0 where the scale is too small for normal numbers, or none: all integers are then 0
};

// Magnitudes as bits compare as the numbers do, and NaN is above all.
__device__ __forceinline__ int magnitude_bits(float value) { return __float_as_int(value) & 0x7fffffff; }

// Quotients are rounded as those of IEEE 754, but have no branch for rare numbers, which several of them at a time
// would have to pass one after the other.

// x / 127, of x >= 0: a product and what it leaves, of all float32 numbers the same as the quotient.
__device__ __forceinline__ float over_127(float x) {
#ifdef __CUDA_ARCH__
  constexpr float kInverse = 1.0f / 127.0f;
  const float product = __fmul_rn(x, kInverse);
  const float quotient = fmaf(fmaf(-product, 127.0f, x), kInverse, product);
  return __float_as_int(x) < 0x7f800000 ? quotient : x;
#else
  return x / 127.0f;
#endif
}

// 1 / x, of normal x > 0 whose inverse is normal: two of Newton's steps from an approximation that is off by a unit in
// the last place at most. They miss where all bits behind the point are ones.
__device__ __forceinline__ float inverse_of_normal(float x) {
#ifdef __CUDA_ARCH__
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
  inverse = fmaf(inverse, fmaf(-x, inverse, 1.0f), inverse);
  inverse = fmaf(inverse, fmaf(-x, inverse, 1.0f), inverse);
  const int bits = __float_as_int(x);
  return (bits & 0x7fffff) == 0x7fffff ? __int_as_float((253 - (bits >> 23)) << 23 | 1) : inverse;
#else
  return 1.0f / x;
#endif
}

__device__ __forceinline__ Int8Scale int8_scale(int largest_bits) {
  const float scale = over_127(__int_as_float(largest_bits));
  const bool normal = scale >= 1.17549435e-38f;
  const bool finite = scale <= 3.40282347e+38f;
  return {normal || !(scale >= 0.0f) ? scale : 0.0f, normal && finite ? inverse_of_normal(scale) : 0.0f};
}

// The product is rounded by itself, not together with the addition after it.
__device__ __forceinline__ int8 to_int8(float value, float inverse) {
  return from_float<int8>(__fmul_rn(value, inverse));
}

// Four neighbouring values in a word.
__device__ __forceinline__ int to_int8_word(const float (&value)[4], float inverse) {
  unsigned int word = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    word |= static_cast<unsigned int>(static_cast<unsigned char>(to_int8(value[i], inverse))) << (8 * i);
  }
  return static_cast<int>(word);
}

// The largest of a value of each of LANES neighbouring lanes (a power of two), and the sum; every lane gets it.
template <int LANES>
__device__ __forceinline__ int largest_of_lanes(int value) {
#pragma unroll
  for (int distance = LANES / 2; distance > 0; distance /= 2) {
    const int other = __shfl_xor_sync(0xffffffffu, value, distance);
    value = other > value ? other : value;
  }
  return value;
}

template <int LANES>
__device__ __forceinline__ int sum_of_lanes(int value) {
#pragma unroll
  for (int distance = LANES / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}
