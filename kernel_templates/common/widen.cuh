#pragma once

// A vector's elements as floats. Halves are unpacked from the words they were loaded in: taken one by one, sm_61 needs
// an instruction more for each.

#include "types.cuh"
#include "vector.cuh"

template <typename T, int N>
__device__ __forceinline__ Vector<float, N> widen(const Vector<T, N>& vector) {
  Vector<float, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    out.element[i] = to_float(vector.element[i]);
  }
  return out;
}

// A byte with its sign flipped, v + 128, becomes the low bits of the float 2^23 + v + 128, by a permutation of bytes
// and a subtraction that rounds nothing: nine instructions of full rate for four bytes. By conversions sm_61 takes four
// of a quarter of the rate and three shifts of half of it.
template <int N>
__device__ __forceinline__ Vector<float, N> widen(const Vector<int8, N>& vector) {
  Vector<float, N> out;
  if constexpr (N % 4 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      const unsigned int word = vector.word[i / 4] ^ 0x80808080u;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        out.element[i + e] = __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7440u + e)) - 8388736.0f;
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      out.element[i] = to_float(vector.element[i]);
    }
  }
  return out;
}

#ifdef __CUDA_ARCH__
__device__ __forceinline__ void widen_pair(float& low, float& high, unsigned int word) {
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
      : "=f"(low), "=f"(high)
      : "r"(word));
}

template <int N>
__device__ __forceinline__ Vector<float, N> widen(const Vector<float16, N>& vector) {
  Vector<float, N> out;
  if constexpr (N % 2 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      widen_pair(out.element[i], out.element[i + 1], reinterpret_cast<const unsigned int*>(&vector)[i / 2]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      out.element[i] = to_float(vector.element[i]);
    }
  }
  return out;
}
#endif
