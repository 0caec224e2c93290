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

__device__ __forceinline__ Int8Scale int8_scale(int largest_bits) {
  const float scale = __int_as_float(largest_bits) / 127.0f;
  const bool normal = scale >= 1.17549435e-38f;
  return {normal || !(scale >= 0.0f) ? scale : 0.0f, normal ? 1.0f / scale : 0.0f};
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
