#pragma once

// A matrix that is only read: where its elements begin, and how they become floats. Elements of most types do so by
// themselves; those of float16x need the exponent width and the bias in the matrix's header.

#include "types.cuh"
#include "vector.cuh"

template <typename T>
struct Matrix {
  const T* elements;
  __device__ __forceinline__ explicit Matrix(const T* matrix) : elements(matrix) {}
  __device__ __forceinline__ float operator()(T element) const { return to_float(element); }
  // Element `index` of a vector; taken so, some types need fewer instructions.
  template <int N>
  __device__ __forceinline__ float operator()(const Vector<T, N>& vector, int index) const {
    return to_float(vector.element[index]);
  }
};

// float16x (docs/formats.md): shifted so that its exponent ends where that of a float does, an element is its value
// times 2^(bias - 127), subnormal or not; the product with a power of two is exact. From the upper half of a word that
// takes a shift, a mask and a product, from the lower half a permutation of bytes more.
template <>
struct Matrix<float16x> {
  static constexpr int kHeadBytes = 128;

  const float16x* elements;
  int shift;          // from the upper half of a word to its place
  unsigned int mask;  // the sign, and the place of exponent and fraction
  float scale;

  __device__ __forceinline__ explicit Matrix(const float16x* matrix)
      : elements(matrix + kHeadBytes / static_cast<int>(sizeof(float16x))) {
    const int exponent_bits = reinterpret_cast<const int*>(matrix)[0];
    const int bias = reinterpret_cast<const int*>(matrix)[1];
    shift = 8 - exponent_bits;
    mask = 0x80000000u | 0x7fff0000u >> shift;
    scale = __int_as_float((254 - bias) << 23);
  }
  __device__ __forceinline__ float operator()(float16x element) const {
    return from_upper(static_cast<unsigned int>(element.bits) << 16);
  }
  template <int N>
  __device__ __forceinline__ float operator()(const Vector<float16x, N>& vector, int index) const {
    if constexpr (N % 2 == 0) {
      unsigned int word;
      memcpy(&word, &vector.element[index / 2 * 2], sizeof word);
      return from_upper(index % 2 == 0 ? __byte_perm(word, 0u, 0x1044u) : word);
    } else {
      return operator()(vector.element[index]);
    }
  }

 private:
  // The element in the upper half of a word, shifted with its sign, whose copies are masked like the lower half.
  __device__ __forceinline__ float from_upper(unsigned int word) const {
    return __uint_as_float(static_cast<unsigned int>(static_cast<int>(word) >> shift) & mask) * scale;
  }
};
