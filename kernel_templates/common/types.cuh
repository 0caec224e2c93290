#pragma once

// Element types of buffers, under the names search spaces use, and their conversions to and from float.
// sm_61 does half arithmetic at 1/64 of the float rate, so half is storage only; bfloat16 is the upper half of a float.

using float32 = float;
using float64 = double;
using int8 = signed char;
using int32 = int;
using int64 = long long;

struct alignas(2) float16 {
  unsigned short bits;
};

struct alignas(2) bfloat16 {
  unsigned short bits;
};

// Its value depends on the matrix that it is of (common/matrix.cuh).
struct alignas(2) float16x {
  unsigned short bits;
};

__device__ __forceinline__ float to_float(float value) { return value; }

__device__ __forceinline__ float to_float(float16 value) {
#ifdef __CUDA_ARCH__
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(value.bits));
  return out;
#else
  return __half2float(__ushort_as_half(value.bits));
#endif
}

__device__ __forceinline__ float to_float(bfloat16 value) {
  return __uint_as_float(static_cast<unsigned int>(value.bits) << 16);
}

__device__ __forceinline__ float to_float(int8 value) { return static_cast<float>(value); }

template <typename T>
__device__ __forceinline__ T from_float(float value);

template <>
__device__ __forceinline__ float from_float<float>(float value) {
  return value;
}

template <>
__device__ __forceinline__ float16 from_float<float16>(float value) {
#ifdef __CUDA_ARCH__
  float16 out;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(value));
  return out;
#else
  return float16{__half_as_ushort(__float2half_rn(value))};
#endif
}

// To nearest, ties to even, of a value of at most 127 in magnitude: its sum with 1.5 · 2^23 has the integer in its low
// byte. On sm_61 that is one addition; conversions have a quarter of its rate.
template <>
__device__ __forceinline__ int8 from_float<int8>(float value) {
  return static_cast<int8>(__float_as_int(value + 12582912.0f));
}

// To nearest, ties to even; sm_61 has no instruction for it.
template <>
__device__ __forceinline__ bfloat16 from_float<bfloat16>(float value) {
  const unsigned int bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return bfloat16{static_cast<unsigned short>(bits >> 16 | 0x40u)};  // a quiet NaN stays one
  }
  return bfloat16{static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
