#pragma once

// N consecutive elements that are read or written by one instruction. Addresses must be multiples of its size.
template <typename T, int N>
struct alignas(sizeof(T) * N) Vector {
  T element[N];
};

template <int N, typename T>
__device__ __forceinline__ Vector<T, N> load_vector(const T* address) {
  return *reinterpret_cast<const Vector<T, N>*>(address);
}

template <typename T, int N>
__device__ __forceinline__ void store_vector(T* address, const Vector<T, N>& value) {
  *reinterpret_cast<Vector<T, N>*>(address) = value;
}
