#pragma once

// Elements that are held as they are in memory, in words of 32 bits, until they are used. Compilers take vectors of
// halves apart where they are loaded under a condition, and so wait for them long before their use.

#include "matrix.cuh"
#include "types.cuh"
#include "vector.cuh"

// An element of two bytes in the lower or the upper half of a word; in words to the end, as compilers would otherwise
// take the halves of words apart as early as those of vectors.
template <typename T>
__device__ __forceinline__ float half_of_word(const Matrix<T>& matrix, unsigned int word, bool upper) {
  Vector<T, 2> elements;
  memcpy(&elements, &word, sizeof elements);
  return matrix(elements, upper ? 1 : 0);
}
__device__ __forceinline__ float half_of_word(const Matrix<bfloat16>& /*matrix*/, unsigned int word, bool upper) {
  return __uint_as_float(upper ? word & 0xffff0000u : word << 16);
}
__device__ __forceinline__ float half_of_word(const Matrix<float16>& /*matrix*/, unsigned int word, bool upper) {
#ifdef __CUDA_ARCH__
  float out;
  if (upper) {
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, high; }" : "=f"(out) : "r"(word));
  } else {
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low; }" : "=f"(out) : "r"(word));
  }
  return out;
#else
  return to_float(float16{static_cast<unsigned short>(upper ? word >> 16 : word)});
#endif
}

template <typename T, int N>
struct Words {
  static constexpr int kCount = N * static_cast<int>(sizeof(T)) / 4;
  static_assert((sizeof(T) == 2 || sizeof(T) == 4) && (kCount == 2 || kCount == 4), "what one instruction loads");

  unsigned int word[kCount];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      word[i] = 0;
    }
  }

  // At this place of the program, as load_here.
  __device__ __forceinline__ void load_here(const T* __restrict__ address) {
#ifdef __CUDA_ARCH__
    if constexpr (kCount == 4) {
      asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                   : "l"(address));
    } else {
      asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(word[0]), "=r"(word[1]) : "l"(address));
    }
#else
    const Vector<T, N> elements = load_vector<N>(address);
    memcpy(word, &elements, sizeof word);
#endif
  }

  // Those before `end` of a row's elements from `column` on; zeros for the others.
  __device__ __forceinline__ void load_some(const T* row, int column, int end) {
    Vector<T, N> elements{};
#pragma unroll
    for (int v = 0; v < N; ++v) {
      if (column + v < end) {
        elements.element[v] = row[column + v];
      }
    }
    memcpy(word, &elements, sizeof word);
  }

  // Element `index` of a matrix, or of other rows.
  __device__ __forceinline__ float get(const Matrix<T>& matrix, int index) const {
    if constexpr (sizeof(T) == 4) {
      return __uint_as_float(word[index]);
    } else {
      return half_of_word(matrix, word[index / 2], index % 2 != 0);
    }
  }
};
