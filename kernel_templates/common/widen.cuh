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
