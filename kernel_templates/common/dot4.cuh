#pragma once

// c + the sum of the products of the four signed bytes of a and b: one instruction from sm_61 on. NVRTC 11.8 declares
// __dp4a without defining it.
__device__ __forceinline__ int dot4(int a, int b, int c) {
#ifdef __CUDA_ARCH__
  int out;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
#else
  return __dp4a(a, b, c);
#endif
}

// The same with unsigned bytes in a.
__device__ __forceinline__ int dot4_unsigned(unsigned int a, int b, int c) {
#ifdef __CUDA_ARCH__
  int out;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
#else
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    c += static_cast<int>(a >> (8 * i) & 0xffu) * static_cast<signed char>(b >> (8 * i));
  }
  return c;
#endif
}

// Integers below 2^22 in magnitude become floats by being added to the bits of 1.5 · 2^23, in which they are the last
// bits of the fraction; conversions are at a quarter of the rate on sm_61. A sum of dot4 that begins with kFloatBits is
// such bits, the float of which exceeds it by kFloatOffset.
constexpr int kFloatBits = 0x4b400000;
constexpr float kFloatOffset = 12582912.0f;
